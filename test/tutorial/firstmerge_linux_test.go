package tutorial

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// typing is one thing that the README has a new user type.
type typing struct {
	typed         string
	took, silence time.Duration
}

// TestFirstMerge measures what the README takes a new user through, from a machine
// with git and Go and empty caches to the first merge, on a terminal.
func TestFirstMerge(t *testing.T) {
	if os.Getenv("LITTERBOX_TEST_FIRST_MERGE") == "" {
		t.Skip("it fetches and builds everything: make first-merge, or LITTERBOX_TEST_FIRST_MERGE=1")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	h := built.New(t)
	bin := filepath.Join(h.Dir, "bin")
	env := append(os.Environ(), "GOBIN="+bin, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -modcacherw",
		"GOMODCACHE="+filepath.Join(h.Dir, "modules"), "GOCACHE="+filepath.Join(h.Dir, "cache"))
	steps := []typing{typeIn(t, root, env, "go install github.com/litterbox-sandbox/litterbox/cmd/litterbox@latest", "go", "install", "./cmd/litterbox")}
	env = append(h.Env, "PATH="+bin+":"+os.Getenv("PATH"), "TERM=xterm-256color", "GIT_PAGER=cat")
	for _, args := range [][]string{
		{"create", "Fix login"},
		{"exec", "fix-login", "-m", "Begin a list", "--", "sh", "-c", "echo milk >list.txt"},
		{"diff", "fix-login", "--stat"},
		{"merge", "fix-login"},
	} {
		steps = append(steps, typeIn(t, h.Repo, env, "litterbox "+quoted(args), append([]string{filepath.Join(bin, "litterbox")}, args...)...))
	}
	if content, err := os.ReadFile(filepath.Join(h.Repo, "list.txt")); err != nil || string(content) != "milk\n" {
		t.Fatalf("what was merged is %q, %v", content, err)
	}
	t.Log("\n" + firstMerge(t, root, steps))
}

func quoted(args []string) string {
	words := make([]string, len(args))
	for i, word := range args {
		if strings.ContainsAny(word, " >") {
			word = "'" + word + "'"
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}

// typeIn runs a command on a terminal.
func typeIn(t *testing.T, dir string, env []string, typed string, argv ...string) typing {
	t.Helper()
	command := exec.Command(argv[0], argv[1:]...)
	command.Dir, command.Env = dir, env
	began := time.Now()
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var shown bytes.Buffer
	one, last := typing{typed: typed}, began
	for buffer := make([]byte, 64<<10); err == nil; {
		var n int
		n, err = terminal.Read(buffer)
		shown.Write(buffer[:n])
		one.silence, last = max(one.silence, time.Since(last)), time.Now()
	}
	if !errors.Is(err, syscall.EIO) && !errors.Is(err, fs.ErrClosed) { // EIO: no process has the terminal
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", typed, err, shown.String())
	}
	one.took = time.Since(began)
	return one
}

// firstMerge is what was measured, as text.
func firstMerge(t *testing.T, root string, steps []typing) string {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(readme), "$ litterbox merge ")
	if !found {
		t.Error("the README shows no merge")
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "seconds  silent  typed (load %s at the end)\n", strings.Fields(string(load))[0])
	var all time.Duration
	for _, one := range steps {
		all += one.took
		fmt.Fprintf(&b, "%7.1f %7.1f  %s\n", one.took.Seconds(), one.silence.Seconds(), one.typed)
	}
	fmt.Fprintf(&b, "%7.1f          all of it\n", all.Seconds())
	fmt.Fprintf(&b, "the README has %d words, and %d before the first merge\n", len(strings.Fields(string(readme))), len(strings.Fields(before)))
	return b.String()
}
