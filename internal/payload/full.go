package payload

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// These variables tell the full program, which carries nothing, where the others
// were unpacked: their names hold the hashes that are demanded of them.
const (
	GuestVariable  = "LITTERBOX_GUEST_PROGRAM"
	KeeperVariable = "LITTERBOX_KEEPER_PROGRAM"
)

// OpenFull returns the full program for this machine, ready to execute. The
// caller closes it.
func OpenFull(dir string) (*os.File, error) {
	packed, id := embeddedFull()
	if packed == nil {
		return nil, fault.New(fault.Internal, "this program is the full one")
	}
	return open(dir, fullName, id, packed)
}

// Handed unpacks what OpenKeeper and OpenGuest have for this machine, and returns
// the variables by which the full program finds it.
func Handed(dir string) ([]string, error) {
	keeper, err := OpenKeeper(dir)
	if err != nil {
		return nil, err
	}
	guest, err := OpenGuest(dir, runtime.GOARCH)
	if err = errors.Join(err, keeper.Close()); err != nil {
		return nil, err
	}
	if guest != nil {
		err = guest.Close()
	}
	_, keeperID := embeddedKeeper()
	_, guestID := embedded(runtime.GOARCH)
	return []string{
		KeeperVariable + "=" + filepath.Join(dir, "bin", keeperName+keeperID),
		GuestVariable + "=" + filepath.Join(dir, "bin", guestName+guestID),
	}, err
}

// ExecPath is a path by which this process can execute an open program.
func ExecPath(program *os.File) string {
	if runtime.GOOS != "linux" {
		return program.Name()
	}
	return "/proc/self/fd/" + strconv.Itoa(int(program.Fd())) // it may be in memory
}
