package keeper

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Lock is the sandbox's lock that its keeper holds as long as it lives. A
// process that does a keeper's work without one takes it too. So at most one
// process at a time records the fate of a place or clears it away.
const Lock = "keeper"

// SinglePatience is how long a keeper that ends may take until the next one can
// begin. It writes down its observations and clears its place away.
const SinglePatience = 5 * time.Second

// single takes the lock. If another keeper keeps it, the error is
// driver.ErrLeaseUnavailable.
func (k *keeper) single(ctx context.Context) error {
	brief, cancel := context.WithTimeout(ctx, SinglePatience)
	defer cancel()
	unlock, err := k.store.Lock(brief, k.order.Spec.SandboxID, Lock)
	if err != nil && brief.Err() != nil && ctx.Err() == nil {
		return fault.Wrap("", driver.ErrLeaseUnavailable, "cannot keep sandbox %q: another keeper does", k.order.Spec.Name)
	}
	k.unlock = unlock
	return err
}
