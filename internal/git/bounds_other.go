//go:build !linux

package git

import "syscall"

// limitProcess does nothing: no sandbox runs here whose objects git could read.
func limitProcess(int, Bounds) error { return nil }

func endWithCaller(*syscall.SysProcAttr) {}
