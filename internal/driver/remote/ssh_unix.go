//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// detach keeps the signals that a terminal sends to a foreground command from ssh,
// which carries what goes on after that command.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
