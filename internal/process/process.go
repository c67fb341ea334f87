// Package process distinguishes a process from the next that gets its pid, ends
// exactly the intended one, works around the length limit of socket paths, and
// executes programs that are open files.
package process

import (
	"os"
	"runtime"
	"strconv"
)

// ExecPath returns a path that lets this process, or a child that it starts,
// execute an open program.
func ExecPath(program *os.File) string {
	if runtime.GOOS != "linux" {
		return program.Name()
	}
	return DescriptorPath(int(program.Fd())) // it may be in memory
}

// DescriptorPath is the path of an open file of this process, on Linux.
func DescriptorPath(fd int) string { return descriptors + strconv.Itoa(fd) }

// descriptors is where a process finds its own open files on Linux.
const descriptors = "/proc/self/fd/"
