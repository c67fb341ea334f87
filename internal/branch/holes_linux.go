package branch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// countHoles keeps out sparse files once the holes of one import have used up
// their limit: a hole costs a sandbox nothing, and the host the time to hash,
// copy and compress it, and the disk for that.
func (s *scan) countHoles(f *os.File, st *unix.Stat_t) error {
	// Blocks (of 512 bytes, stat(2)) are known already, and most files have
	// all of theirs. They are no proof: a compressing file system counts few.
	const page = 4096
	if st.Size-st.Blocks*512 <= page {
		return nil
	}
	holes, err := holesIn(f, st.Size)
	if err != nil || holes <= page {
		return unreadable(err)
	}
	if s.holes+holes > s.limits.Holes {
		return errStays{fmt.Sprintf("it is sparse, and %d of its %d bytes are holes", holes, st.Size)}
	}
	s.holes += holes
	return nil
}

// holesIn adds up the holes of a file (lseek(2), SEEK_HOLE). A file system that
// knows none has none.
func holesIn(f *os.File, size int64) (int64, error) {
	var holes int64
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole up to the end
			holes += size - at
			break
		}
		if err != nil {
			return 0, err
		}
		holes += min(data, size) - at
		if at, err = unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE); err != nil {
			if errors.Is(err, unix.ENXIO) {
				break // it became shorter
			}
			return 0, err
		}
	}
	_, err := f.Seek(0, 0)
	return holes, err
}
