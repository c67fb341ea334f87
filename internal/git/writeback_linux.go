package git

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback asks the kernel to begin writing a file, without waiting. On
// ext4 that assigns its blocks, so that the journal cannot record the branch
// before the objects (data=ordered): after a power loss the last seconds may
// be missing, but nothing points at an empty file.
func startWriteback(path string) {
	f, err := os.Open(path)
	if err != nil {
		return // already packed elsewhere by the user's own git
	}
	defer f.Close()
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // a hint
}
