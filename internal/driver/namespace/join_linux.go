package namespace

import (
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Namespaces implements driver.Joiner: those of the guest.
func (Driver) Namespaces(lease driver.Lease) (string, error) {
	place, err := local.Place[handle](lease)
	if err != nil {
		return "", err
	}
	if !place.lives() {
		return "", fault.Wrap("", driver.ErrMachineLost, "cannot find the namespaces of the sandbox")
	}
	return fmt.Sprintf("/proc/%d/ns", place.Guest.PID), nil
}
