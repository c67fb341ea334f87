//go:build linux

package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/outpost/station"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
)

// counted is a machine that counts the questions asked over its link, and the bytes
// of the answers.
type counted struct {
	root string

	mu        sync.Mutex
	questions int
	answered  int64
}

func (*counted) Name() string                 { return "counted" }
func (*counted) Ensure(context.Context) error { return nil }

func (c *counted) Dial(context.Context) (io.ReadWriteCloser, error) {
	here, between := net.Pipe()
	beyond, there := net.Pipe()
	answering := &station.Station{Root: c.root, Driver: keeping{}}
	go func() { _ = answering.Serve(there) }()
	on := outpost.Dialled(beyond)
	outpost.Accepted(between, func(question *outpost.Stream) {
		answer, err := on.Open()
		if err != nil {
			question.Abort()
			return
		}
		c.count(1, 0)
		go func() {
			_, _ = io.Copy(answer, question)
			_ = answer.CloseWrite()
		}()
		n, err := io.Copy(question, answer)
		c.count(0, n)
		if err != nil {
			question.Abort()
		}
	})
	return here, nil
}

func (c *counted) count(questions int, answered int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions += questions
	c.answered += answered
}

func (c *counted) reset() (questions int, answered int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	questions, answered = c.questions, c.answered
	c.questions, c.answered = 0, 0
	return questions, answered
}

// A commit in a machine where thousands of files have changed before asks at most
// two questions, and what it is answered is as long as what has changed since.
func TestQuestionsOfAFarCommit(t *testing.T) {
	repository := gittest.Repository(t)
	gittest.Write(t, repository, "base", "base\n")
	gittest.Write(t, repository, ".gitignore", "ignored/\n")
	gittest.Shell(t, repository, "git add -A; git commit -qm base")
	box := branchtest.New(t, repository, "box")
	machine := &counted{root: t.TempDir()}
	d := remote.New("counted", sandbox.Traits{Files: sandbox.FilesCarried}, func(string) remote.Machine { return machine })
	state := filepath.Dir(box.Upper)
	spec := driver.Spec{SandboxID: "box", StateDir: state, Workspace: driver.Workspace{Path: "/work", Layers: box.Layers, Upper: box.Upper}}
	lease, err := d.Acquire(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	lease.StateDir = state
	upper := filepath.Join(machine.root, "sandboxes", "box", "upper")
	write := func(name string, content []byte, age time.Duration) {
		t.Helper()
		path := filepath.Join(upper, name)
		when := time.Now().Add(-age)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	commit := func() branch.ImportResult {
		t.Helper()
		request := box.Request()
		request.Workspace = feed.Workspace{Source: d.Files(lease), Compared: workspace.Base{Tree: box.Base}}
		result, err := branch.Import(gittest.Context(t), box.Repository, request)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	for n := range 3000 {
		write(fmt.Sprintf("dir-%d/file-%d", n%30, n), fmt.Appendf(nil, "%d\n", n), 0)
		write(fmt.Sprintf("ignored/%d", n), nil, 0)
	}
	machine.reset()
	if result := commit(); result.Changed != 3000 {
		t.Fatalf("%d files of 3000 are committed", result.Changed)
	}
	machine.reset()
	for n := range 10 {
		write(fmt.Sprintf("dir-%d/file-%d", n, n), bytes.Repeat([]byte{'a' + byte(n)}, 3000*n), time.Hour)
	}
	if err := os.Remove(filepath.Join(upper, "dir-29/file-29")); err != nil {
		t.Fatal(err)
	}
	result := commit()
	questions, bytes := machine.reset()
	if result.Changed != 11 || questions > 2 {
		t.Errorf("%d files of 11 are committed with %d questions", result.Changed, questions)
	}
	const content = 3000 * 45
	if bytes > content+content/10 {
		t.Errorf("the answers are %d bytes for %d that have changed", bytes, content)
	}
	if result := commit(); result.Changed != 0 {
		t.Errorf("%d files are committed when none has changed", result.Changed)
	}
	if questions, bytes := machine.reset(); questions > 1 || bytes > 2000 {
		t.Errorf("when nothing has changed the answers to %d questions are %d bytes", questions, bytes)
	}
	// Whatever becomes of what either end keeps, the files are the same.
	for name, spoil := range map[string]func(path string) error{
		"gone":    os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte("something else"), 0o600) },
	} {
		for where, path := range map[string]string{"here": filepath.Join(state, "listed"), "there": filepath.Join(machine.root, "sandboxes", "box", "listed")} {
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			write("base", []byte(name+where), 0)
			if result := commit(); result.Changed != 1 {
				t.Errorf("%s %s: %d files are committed", name, where, result.Changed)
			}
		}
	}
}
