package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// openAt opens a file at the first free number from number on.
func openAt(t *testing.T, path string, number int) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, number)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), path)
}

// A child moves its own pipe to the number after the largest that it is given, and
// the given files to the next ones. A program that is open there is still
// executed.
func TestStartWhateverTheDescriptors(t *testing.T) {
	shell, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []int{-1, 1, 2, 3, 4, 5} {
		last := openAt(t, os.DevNull, 500)
		program := openAt(t, shell, int(last.Fd())+ahead)
		attr := &os.ProcAttr{Files: []*os.File{last, last, last}}
		child, err := process.Start(program, []string{"true"}, attr)
		if err != nil {
			t.Errorf("the program is %d ahead: %v", ahead, err)
		} else if state, err := child.Wait(); err != nil || !state.Success() {
			t.Errorf("the program is %d ahead: %v, %v", ahead, state, err)
		}
		if ahead == 1 { // the control: what Start is for
			if child, err := os.StartProcess(process.ExecPath(program), []string{"true"}, attr); err == nil {
				_, _ = child.Wait()
				t.Error("a child executes a program whose descriptor it has overwritten: Start is needed no more")
			}
		}
		if err := errors.Join(program.Close(), last.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestAnswer(t *testing.T) {
	open := func(name string) *os.File {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	got, err := process.Answer(t.Context(), open("cat"), "cat", nil, []byte("said"))
	if err != nil || string(got) != "said" {
		t.Errorf("cat answers %q, %v", got, err)
	}
	if got, err := process.Answer(t.Context(), open("false"), "false", nil, nil); err == nil {
		t.Errorf("false answers %q", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := process.Answer(ended, open("sleep"), "sleep", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("one that was given up answers %v", err)
	}
}
