package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Ready waits until a started child reports that its guest serves: one byte,
// serves. A child that fails sends failed and then the reason, up to the end.
func Ready(status io.Reader, serves, failed byte) error {
	kind := make([]byte, 1)
	if _, err := io.ReadFull(status, kind); err != nil {
		return errors.New("its first process ended without a message")
	}
	switch kind[0] {
	case serves:
		return nil
	case failed:
		text, err := io.ReadAll(status)
		return errors.Join(errors.New(string(text)), err)
	}
	return fmt.Errorf("it said %q, which is not understood", kind[0])
}

// Place reads what a driver has put into a lease.
func Place[T any](lease driver.Lease) (place T, err error) {
	if err := json.Unmarshal(lease.Handle, &place); err != nil {
		return place, fault.Wrap(fault.Internal, err, "cannot read the lease's handle")
	}
	return place, nil
}
