//go:build !linux

package process

import (
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Identify needs Linux's /proc.
func Identify(pid int) (sandbox.Process, error) {
	return sandbox.Process{}, fault.New(fault.Unsupported, "cannot identify process %d on this system", pid)
}

// Alive is false: nothing was ever identified here.
func Alive(sandbox.Process) bool { return false }

// ShortPath passes dir on as it is.
func ShortPath(dir string, use func(short string) error) error { return use(dir) }

// CloseOnExec does nothing: no sandbox is started here.
func CloseOnExec(int) error { return nil }

// MakeIdle does nothing here.
func MakeIdle(int) {}

// End does nothing: nothing was ever identified here.
func End(sandbox.Process) error { return nil }
