//go:build unix

package engine

import "syscall"

// detached puts the keeper into a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
