package launch_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/keeper/launch"
)

// A keeper starts no matter which descriptors its program and the guest's have:
// also if its program is the first after all that it is given.
func TestStartWhateverTheDescriptors(t *testing.T) {
	open := func(path string, number int) *os.File {
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
	for _, ahead := range []int{-1, 1, 2, 3, 4, 5} {
		guest := open("/dev/null", 500)
		program := open("/bin/sh", int(guest.Fd())+ahead)
		processes := launch.Processes{
			Program: func(string) (*os.File, error) { return program, nil }, Name: "sh",
			Guest: func() (*os.File, error) { return guest, nil },
		}
		started, err := processes.Start("", t.TempDir(), nil)
		if err != nil {
			t.Errorf("the program is %d ahead of the guest: %v", ahead, err)
			continue
		}
		started.Abandon()
	}
}
