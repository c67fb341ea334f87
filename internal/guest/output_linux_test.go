package guest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

var anyNumbers = cmpopts.IgnoreFields(wire.Process{}, "PID", "Parent", "Group")

func TestBackgroundIsListed(t *testing.T) {
	b := newBox(t)
	other := b.open()
	go func() { _, _ = wire.Run(limit(t), other, wire.Exec{Argv: argv("sleep", "2000")}, wire.Streams{}) }()
	eventually(t, "the other command runs", func() bool {
		_, got := b.run(wire.Exec{Argv: argv("pgrep", "-f", "^sleep 2000")}, nil)
		return got.Code == 0
	})

	exit, got := b.run(wire.Exec{Iteration: 4, Argv: argv("sh", "-c",
		"sleep 1000 >/dev/null 2>&1 & setsid -f sleep 1001 >/dev/null 2>&1; echo hi; until pgrep -f '^sleep 1000' >/dev/null && pgrep -f '^sleep 1001' >/dev/null; do sleep 0.01; done")}, nil)
	if diff := cmp.Diff(outcome{Out: "hi\n"}, got); diff != "" {
		t.Error(diff)
	}
	want := []wire.Process{{Command: "sleep 1000"}, {Command: "sleep 1001"}}
	byCommand := cmpopts.SortSlices(func(a, b wire.Process) bool { return a.Command < b.Command })
	if diff := cmp.Diff(want, exit.Background, anyNumbers, byCommand); diff != "" {
		t.Error(diff)
	}
	if exit.Output != "" {
		t.Errorf("output to %q although nobody holds the pipes", exit.Output)
	}
	// Later commands did not leave them; they still run outside of any.
	if exit, _ := b.run(wire.Exec{Argv: argv("sh", "-c", "sleep 0.05")}, nil); len(exit.Background) > 0 {
		t.Errorf("left by somebody else: %v", exit.Background)
	}
	if diff := cmp.Diff(want, processes(t, b), anyNumbers, byCommand); diff != "" {
		t.Error(diff)
	}
}

func TestLateOutputGoesToAFile(t *testing.T) {
	b := newBox(t)
	exit, got := b.run(wire.Exec{Iteration: 7, Argv: argv("sh", "-c",
		"(until [ -e go ]; do sleep 0.01; done; echo late; echo bad >&2; exec sleep 1000) & echo hi")}, nil)
	if diff := cmp.Diff(outcome{Out: "hi\n"}, got); diff != "" {
		t.Error(diff)
	}
	if len(exit.Background) == 0 || exit.Output != "/run/litterbox/output-7.log" {
		t.Fatalf("%+v", exit)
	}
	b.sh("touch go")
	eventually(t, "the late output is in the file", func() bool {
		var text bytes.Buffer
		_, err := wire.Read(limit(t), b.open(), []byte(exit.Output), 0, 0, &text)
		return err == nil && strings.Contains(text.String(), "late\n") && strings.Contains(text.String(), "bad\n")
	})
}

// The file is bounded, and beyond the bound the pipe still flows.
func TestLateOutputIsBounded(t *testing.T) {
	b := newBox(t)
	exit, _ := b.run(wire.Exec{Argv: argv("sh", "-c",
		"(until [ -e go ]; do sleep 0.01; done; head -c 20000000 /dev/zero; : > flowed; exec sleep 1000) & true")}, nil)
	b.sh("touch go; until [ -e flowed ]; do sleep 0.01; done")
	eventually(t, "the file has its greatest size", func() bool {
		return b.sh("stat -c %s "+exit.Output) == fmt.Sprint(16<<20)
	})
}

// stuckWriter takes nothing before it is released.
type stuckWriter struct {
	bytes.Buffer
	release <-chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	<-w.release
	return w.Buffer.Write(p)
}

// However late a client reads, output written before the end arrives.
func TestSlowReaderLosesNothing(t *testing.T) {
	b := newBox(t)
	release := make(chan struct{})
	stdout := &stuckWriter{release: release}
	go func() {
		defer close(release)
		eventually(t, "the command is over", func() bool {
			_, err := os.Stat(filepath.Join(b.upper, "over"))
			return err == nil
		})
		// Longer than the guest waits for output that may or may not come.
		time.Sleep(time.Second)
	}()
	exit, err := wire.Run(limit(t), b.open(), wire.Exec{Argv: argv("sh", "-c",
		fmt.Sprintf("sleep 1000 & head -c %d /dev/zero; head -c 60000 /dev/zero; : > over", 1<<20))}, wire.Streams{Stdout: stdout})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1<<20 + 60000; stdout.Len() != want {
		t.Errorf("%d bytes of %d came; exit %+v", stdout.Len(), want, exit)
	}
}
