//go:build !linux

package guest

import "github.com/litterbox-sandbox/litterbox/internal/fault"

// Run is for Linux: a sandbox is a Linux system on every host.
func Run(Config) error {
	return fault.New(fault.Unsupported, "cannot run the guest: it needs Linux")
}
