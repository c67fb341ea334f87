package keeper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// borrower records what it is lent, and answers with an error.
type borrower struct {
	driver.Driver
	lent []string
	err  error
}

func (b *borrower) Lend(_ context.Context, _ driver.Lease, target string, content []byte) error {
	b.lent = append(b.lent, target+" "+string(content))
	return b.err
}

func TestLend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(RootsFile, "all")
	put(OwnRootsFile, "own")
	to := &borrower{}
	k := &keeper{base: t.Context(), driver: to, lease: &sandbox.Lease{Traits: sandbox.Traits{Lends: true}}}
	k.order.Spec.StateDir = dir
	lends := func(want ...string) {
		t.Helper()
		to.lent = nil
		if err := k.lend(); err != nil || !slices.Equal(to.lent, want) {
			t.Errorf("it lends %q, %v, not %q", to.lent, err, want)
		}
	}
	lends(RootsInside+" all", OwnRootsInside+" own")
	lends() // nothing has changed
	put(RootsFile, "all and the authority")
	lends(RootsInside + " all and the authority")

	// A machine that cannot be reached is tried again.
	put(RootsFile, "later")
	to.err = driver.ErrUnreachable
	if err := k.lend(); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("an unreachable machine: %v", err)
	}
	to.err = nil
	lends(RootsInside + " later")

	// One of an earlier version goes on without.
	put(RootsFile, "at last")
	for _, err := range []error{fault.Wrap("", driver.ErrUnsupported, "unknown operation"), fault.New(fault.NotFound, "no such file")} {
		to.err, k.notes = err, nil
		lends(RootsInside + " at last")
		if len(k.notes) != 1 {
			t.Errorf("after %v it notes %q", err, k.notes)
		}
	}

	k.lease.Traits.Lends = false // the files of the host are mounted
	lends()
}
