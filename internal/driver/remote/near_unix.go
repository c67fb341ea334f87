//go:build unix

package remote

import (
	"io/fs"
	"syscall"
)

// fileID distinguishes a file of this machine from every other.
type fileID struct{ device, inode uint64 }

// identify returns which file it is and how many names it has.
func identify(info fs.FileInfo) (id fileID, links uint64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id, 0, false
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink), true // other systems have other types
}
