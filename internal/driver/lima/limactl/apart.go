//go:build unix

package limactl

import (
	"os/exec"
	"syscall"
)

// apart keeps limactl from the interrupt of a terminal: the virtual machine that
// it starts is for all sandboxes, and an interrupted command ends limactl
// itself.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
