package station

import (
	"os"

	"golang.org/x/sys/unix"
)

// settle flushes the writes of places to the disk, if the machine may be
// switched off at any moment: files that become a commit must still be in the
// working tree then, or the next commit would undo them.
func (s *Station) settle() {
	if !s.Durable {
		return
	}
	if root, err := os.Open(s.Root); err == nil {
		_ = unix.Syncfs(int(root.Fd())) // the next write reports a failing disk
		root.Close()
	}
}
