package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Where a sandbox finds its roots, on every distribution: the host's with its own
// authority's, and its own alone.
const (
	RootsInside    = "/var/lib/litterbox/roots.pem"
	OwnRootsInside = "/var/lib/litterbox/roots-own.pem"
)

// RootsLent are the files in the directory of a sandbox that a driver which lends shows
// inside.
func RootsLent(dir string) []driver.Lent {
	return []driver.Lent{
		{Source: filepath.Join(dir, RootsFile), Target: RootsInside},
		{Source: filepath.Join(dir, OwnRootsFile), Target: OwnRootsInside},
	}
}

// lendPatience is how long a machine may take for the files that it is lent.
const lendPatience = time.Minute

// lend sends the roots as they are now, where nothing of the host is mounted. It
// runs when the sandbox has to trust an authority of its own.
func (k *keeper) lend() error { return k.lendFiles(RootsLent(k.order.Spec.StateDir)) }

// lendFiles sends files as they are now. What has been sent is not sent again.
func (k *keeper) lendFiles(all []driver.Lent) error {
	lender, can := k.driver.(driver.Lender)
	if !can || !k.lease.Traits.Lends {
		return nil
	}
	k.lending.Lock()
	defer k.lending.Unlock()
	ctx, cancel := context.WithTimeout(k.base, lendPatience)
	defer cancel()
	if k.lent == nil {
		k.lent = map[string][]byte{}
	}
	for _, one := range all {
		content, err := os.ReadFile(one.Source)
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot read what is lent to sandbox %q", k.order.Spec.Name)
		}
		if sent, known := k.lent[one.Target]; known && bytes.Equal(sent, content) {
			continue
		}
		err = lender.Lend(ctx, k.driverLease(), one.Target, content)
		if errors.Is(err, driver.ErrUnsupported) || fault.KindOf(err) == fault.NotFound {
			k.noteUnlent()
			return nil
		}
		if err != nil {
			return fault.Wrap("", err, "cannot lend %s to sandbox %q", one.Target, k.order.Spec.Name)
		}
		k.lent[one.Target] = content
	}
	return nil
}

// noteUnlent says that the machine, or the place in it, was made by an earlier
// version. What else works there goes on.
func (k *keeper) noteUnlent() {
	const note = "its machine was made by an earlier litterbox: programs there trust no authority of the sandbox, so secrets and rules on paths do not work; stop and start it, or recreate the machine"
	if k.net == nil { // the report is still to come
		k.notes = append(k.notes, note)
		return
	}
	fmt.Fprintln(os.Stderr, "keeper: "+note)
}
