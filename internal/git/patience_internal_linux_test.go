package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// A pipe in the place of an object holds up any git that reads it, for ever: it ends,
// and the error names the pipe.
func TestGitThatWaitsForAFile(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, "git init -q . && echo one >file && git add . && git -c user.name=x -c user.email=x@y commit -qm one")
	blob := shell(t, dir, "git rev-parse HEAD:file")
	pipe := filepath.Join(dir, ".git", "objects", blob[:2], blob[2:])
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	soon := Bounds{wait: 200 * time.Millisecond}
	for name, c := range map[string]Command{
		"ours":         {GitDir: filepath.Join(dir, ".git"), Tight: soon, Args: []string{"cat-file", "-p", blob}},
		"with a child": {GitDir: filepath.Join(dir, ".git"), Tight: soon, Args: []string{"-c", "alias.x=!git cat-file -p " + blob + "; true", "x"}},
		"a relative path": {
			Dir: dir, Tight: soon, Env: []string{"GIT_DIR=.git"}, Args: []string{"cat-file", "-p", blob},
		},
		"the user's own": {Dir: dir, Plain: true, Tight: soon, Args: []string{"cat-file", "-p", blob}},
		"an umask":       {GitDir: filepath.Join(dir, ".git"), Umask: true, Tight: soon, Args: []string{"cat-file", "-p", blob}},
	} {
		t.Run(name, func(t *testing.T) {
			wantTooLong(t, c, pipe)
		})
	}
	// A deletion starts half a dozen: the next ones do not wait for a minute each.
	next := Command{GitDir: filepath.Join(dir, ".git"), Args: []string{"cat-file", "-p", blob}}
	if _, err := next.Output(t.Context()); fault.KindOf(err) != fault.Timeout || !strings.Contains(err.Error(), "it has waited 3s for the file") {
		t.Errorf("the next git: %v", err)
	}

	// The same where a writer holds the pipe open and writes nothing.
	open, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	c := Command{GitDir: filepath.Join(dir, ".git"), Tight: soon, Args: []string{"hash-object", "--no-filters", pipe}}
	wantTooLong(t, c, pipe)
}

func wantTooLong(t *testing.T, c Command, pipe string) {
	t.Helper()
	_, err := c.Output(t.Context())
	if fault.KindOf(err) != fault.Timeout || !strings.Contains(err.Error(), "it has waited 200ms for the file \""+pipe+`"`) {
		t.Errorf("%v", err)
	}
	if hint := fault.HintOf(err); !strings.HasPrefix(hint, "ls -l "+pipe+" ") {
		t.Errorf("hint %q", hint)
	}
}

// Git that works, or that waits for its input, its reader or another program, has all
// the time it needs.
func TestGitThatMayTakeItsTime(t *testing.T) {
	const moment = 200 * time.Millisecond // of patience, and many of them pass
	for name, script := range map[string]string{
		"works":                          "n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done\n",
		"waits for another program":      "sleep 1.5\n",
		"waits for its input":            "read line; echo $line\n",
		"another program reads a pipe":   "exec 3<>$0.pipe; /bin/sh -c 'read x <&3' & sleep 1.5; kill $!\n",
		"reads one file again and again": "n=0; while [ $n -lt 1000 ]; do cat $0 >/dev/null; n=$((n+1)); done\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := standIn(t, script)
			if err := unix.Mkfifo(filepath.Join(dir, "git.pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			time.AfterFunc(8*moment, func() { _ = write.Close() })
			if _, err := (Command{Dir: dir, Stdin: read, Tight: Bounds{wait: moment}, Args: []string{"diff-tree"}}).Output(t.Context()); err != nil && ExitCode(err) < 0 {
				t.Error(err)
			}
		})
	}
}

// shell runs a script and returns its output.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}
