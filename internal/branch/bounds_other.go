//go:build !linux

package branch

import "syscall"

// limitProcess does nothing: no sandbox runs here whose objects git could read.
func limitProcess(int, bounds) error { return nil }

func endWithCaller(*syscall.SysProcAttr) {}
