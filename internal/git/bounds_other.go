//go:build !linux

package git

import "syscall"

// limitProcess does nothing, and needs not: without package process no sandbox can
// be made from this system, on whatever machine, so git reads no agent's objects.
// A change that makes that possible bounds git first.
func limitProcess(int, Bounds) error { return nil }

func endWithCaller(*syscall.SysProcAttr) {}
