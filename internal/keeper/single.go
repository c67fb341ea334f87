package keeper

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Lock is the sandbox's lock that its keeper holds as long as it lives. Whoever
// does a keeper's work without one takes it too. So there is never more than
// one who records what becomes of a place or clears it away.
const Lock = "keeper"

// SinglePatience is how long a keeper that ends may take until the next one can
// begin. It writes down what it has seen and clears its place away.
const SinglePatience = 5 * time.Second

// single takes the lock. A keeper that stays is driver.ErrLeaseUnavailable.
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
