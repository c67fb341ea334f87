package fsmonitor

import (
	"strconv"
	"strings"
)

// BaseFile lists the files of the base, in the sandbox's own .git: the size of
// object ids in bytes, a line break, and the sorted paths, each with a NUL.
const BaseFile = "litterbox-base"

// FormatBase returns the content of [BaseFile] for the sorted paths of a base.
func FormatBase(oidSize int, paths []string) []byte {
	var b strings.Builder
	b.WriteString(strconv.Itoa(oidSize) + "\n")
	for _, path := range paths {
		b.WriteString(path + "\x00")
	}
	return []byte(b.String())
}
