package payload

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// GuestVariable tells the full program, which carries nothing, where the small
// one was unpacked: its name holds the hash that is demanded of it.
const GuestVariable = "LITTERBOX_GUEST_PROGRAM"

// OpenFull returns the full program for this machine, ready to execute. The
// caller closes it.
func OpenFull(dir string) (*os.File, error) {
	packed, id := embeddedFull()
	if packed == nil {
		return nil, fault.New(fault.Internal, "this program is the full one")
	}
	return open(dir, fullName, id, packed)
}

// Unpacked is where Open has the small program; empty where it is not embedded.
func Unpacked(dir string) (string, error) {
	packed, id := embedded(runtime.GOARCH)
	if packed == nil {
		return "", nil
	}
	file, err := Open(dir)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bin", guestName+id), file.Close()
}

// ExecPath is a path by which this process can execute an open program.
func ExecPath(program *os.File) string {
	if runtime.GOOS != "linux" {
		return program.Name()
	}
	return "/proc/self/fd/" + strconv.Itoa(int(program.Fd())) // it may be in memory
}
