package keeper

import (
	"context"
	"errors"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// snapshot answers OpSnapshot. Nothing inside moves while it is taken, and
// clients that want something of the guest wait meanwhile, as for a policy.
func (k *keeper) snapshot(ctx context.Context, label string) (taken driver.Snapshot, err error) {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	if k.idle.paused == "" {
		if err := k.pauseLocked(ctx, sandbox.PausedForCopy); err != nil {
			return taken, err
		}
		defer func() { err = errors.Join(err, k.resumeLocked(ctx)) }()
	}
	return k.driver.Snapshot(ctx, k.driverLease(), label)
}
