//go:build !linux

package process

import "os"

// Start is os.StartProcess for an open program, which is executed by its path
// here. It leaves the program open.
func Start(program *os.File, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(ExecPath(program), argv, attr)
}

// StartPath is os.StartProcess.
func StartPath(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(path, argv, attr)
}
