package payload

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// These variables tell the full program, which carries nothing, where the others
// were unpacked: their names hold the hashes demanded of them.
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

// Handed unpacks the programs of OpenKeeper and OpenGuest for this machine, and
// returns the variables that lead the full program to them.
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
	if err != nil {
		return nil, err
	}
	outposts, err := Outposts(dir)
	return append(outposts,
		KeeperVariable+"="+filepath.Join(dir, "bin", keeperName+keeperID),
		GuestVariable+"="+filepath.Join(dir, "bin", guestName+guestID),
	), err
}
