//go:build unix

package launch

import "syscall"

// detached puts the keeper into a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
