package git

import (
	"fmt"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Owner is the owner of the files as a sandbox sees them. With Chown the files
// themselves get these ids (a sandbox run by root sees the layers through an
// idmapped mount); otherwise only the index has them.
type Owner struct {
	UID, GID int
	Chown    bool
}

func (o Owner) Suffix() string {
	s := fmt.Sprintf("-%d-%d", o.UID, o.GID)
	if o.Chown {
		s += "-own"
	}
	return s
}

// Give changes the owner of one file if the layers' files have one.
func (o Owner) Give(path string) error {
	if !o.Chown {
		return nil
	}
	if err := os.Lchown(path, o.UID, o.GID); err != nil {
		return fault.Wrap(fault.Denied, err, "cannot give %q to uid %d", path, o.UID)
	}
	return nil
}
