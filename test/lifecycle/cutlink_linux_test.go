package lifecycle_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// links returns the processes at the other end of a process's links to a machine
// that is its child.
func links(pid int) []int {
	var found []int
	for _, stat := range globbed("/proc/[0-9]*/stat") {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		_, after, _ := strings.Cut(string(data), ") ") // state and parent
		fields := strings.Fields(after)
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(pid) || !bytes.HasPrefix(command, []byte("litterbox-guest\x00outpost\x00")) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat))); err == nil {
			found = append(found, child)
		}
	}
	return found
}

func globbed(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the pattern is a good one
	return found
}

// A link to a machine that is cut under a command ends that command; its files
// are committed once, by the next command that commits. A client that dies with
// its link leaves that to the next command.
func TestCutLinkLosesNoWork(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Must("create", "box", "--driver", "child")
	b := box{h, "box"}
	far := filepath.Join(filepath.Dir(filepath.Dir(b.dir())), "machines/child/sandboxes")
	committed := func(file string) int {
		t.Helper()
		return len(strings.Fields(b.Git("log", "--format=%H", "box", "--", file)))
	}
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("its client dies %v", dies), func(t *testing.T) {
			file := fmt.Sprintf("written-%v", dies)
			cmd := exec.Command(b.Program("litterbox"), "exec", "box", "--", "sh", "-c", "echo early >early; mv early "+file+"; exec sleep 1000")
			var said bytes.Buffer
			cmd.Dir, cmd.Env, cmd.Stderr = b.Repo, b.Env, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			b.await("the command has written", func() bool { return len(globbed(filepath.Join(far, "*/upper", file))) == 1 })
			if dies {
				b.signal(cmd.Process.Pid, syscall.SIGKILL)
			}
			cut := links(b.keeper())
			for _, pid := range cut {
				b.signal(pid, syscall.SIGKILL)
			}
			if len(cut) == 0 {
				t.Error("there was no link to cut: the test shows nothing")
			}
			err := cmd.Wait()
			if !dies && (cmd.ProcessState.ExitCode() != 125 || !strings.Contains(said.String(), "the sandbox goes on")) {
				t.Errorf("the command that was cut off: %v\n%s", err, said.String())
			}
			if n := committed(file); n != 0 {
				t.Errorf("the test shows nothing: %d commits have the file before the next command", n)
			}
			var got program.Result
			b.await("the sandbox answers again", func() bool {
				got = b.Inside("box", "cat", file)
				return got.Code == 0
			})
			want := 0
			if dies {
				want = 1
			}
			if n := committed(file); got.Stdout != "early\n" || n != want {
				t.Errorf("after a command that commits nothing the file has %q, and %d commits have it, want %d", got.Stdout, n, want)
			}
			for range 2 {
				b.Must("exec", "box", "--", "true")
				if n := committed(file); n != 1 {
					t.Errorf("after a command that commits %d commits have the file, want one", n)
				}
			}
		})
	}
	if list := b.Must("list"); !strings.Contains(list, "running") {
		t.Errorf("list:\n%s", list)
	}
	if events := b.Must("events"); strings.Contains(events, "sandbox.lost") {
		t.Errorf("it was taken for lost:\n%s", events)
	}
}
