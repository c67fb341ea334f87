package keeper

import (
	"fmt"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// openRelay lends the driver's link to the machine, where it has one. Without it
// other processes connect by themselves.
func (k *keeper) openRelay() {
	relayer, can := k.driver.(driver.Relayer)
	if !can {
		return
	}
	relay, err := relayer.Relay(k.order.Spec.StateDir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeper: the link to the machine is not lent:", err)
		return
	}
	k.relay = relay
}

// unrelay lends no more.
func (k *keeper) unrelay() error {
	if k.relay == nil {
		return nil
	}
	return k.relay.Close()
}
