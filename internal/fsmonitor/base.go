package fsmonitor

import "strconv"

// BaseFile lists the files of the base, in the sandbox's own .git: the size of
// object ids in bytes, a line break, and the sorted paths, each with a NUL.
const BaseFile = "litterbox-base"

// FormatBase returns the content of [BaseFile] for the sorted paths of a base.
func FormatBase(oidSize int, paths []string) []byte {
	head := strconv.Itoa(oidSize) + "\n"
	size := len(head)
	for _, path := range paths {
		size += len(path) + 1
	}
	b := append(make([]byte, 0, size), head...)
	for _, path := range paths {
		b = append(append(b, path...), 0)
	}
	return b
}
