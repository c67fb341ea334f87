//go:build unix

package journal

import (
	"io/fs"
	"syscall"
)

// linked reports whether a file that is open still has a name.
func linked(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 0
}
