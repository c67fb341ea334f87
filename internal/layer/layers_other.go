//go:build !linux

package layer

import "github.com/litterbox-sandbox/litterbox/internal/fault"

// OpenStack needs the layers of this machine, which only Linux has.
func OpenStack([]string) (Beneath, error) {
	return nil, fault.New(fault.Unsupported, "cannot read layers on this system")
}
