// Package drivertest is the driver contract: what package driver promises, as
// a table of checks that every driver joins with a constructor, a way to kill a guest
// and to deafen a place, and a count of places ([Env]).
//
// A check returns an error instead of failing a test, so that the contract is
// itself tested: package fake has one defect for each check, and a check that
// no defect can fail is a defect. Nothing here looks at a driver's name; a
// driver must refuse what it does not declare (see [Check]).
//
// Start reading at [Checks].
package drivertest

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Env is what a driver contributes to the contract. Every check gets its own.
type Env struct {
	// Dir is an empty directory for everything that a check makes. It lies
	// where the driver can put a sandbox's state.
	Dir string

	// Driver returns a fresh value each time, as another process would have:
	// it shares only the machine with earlier values.
	Driver func() driver.Driver

	// Kill ends the guest of a place as kill -9 does (or a power failure of
	// its machine), behind the driver's back.
	Kill func(ctx context.Context, lease driver.Lease) error

	// Deafen makes a place answer nothing, or answer again, behind the driver's
	// back: its network is down, its socket is moved away. Everything in it goes on
	// running.
	Deafen func(ctx context.Context, lease driver.Lease, deaf bool) error

	// Places names what runs at this moment because of any driver value, one
	// entry for each place or part of one. It is called again for some seconds
	// when something may just be ending.
	Places func() ([]string, error)
}

// Check is one promise of the contract.
type Check struct {
	Name string
	Why  string

	// Needs reports whether the promise is made; nil means always.
	Needs func(driver.Capabilities) bool

	// Run returns what is wrong, or nil.
	Run func(ctx context.Context, env *Env) error

	// Absent runs instead when Needs says no: the operation must answer
	// driver.ErrUnsupported. It is nil if Needs is.
	Absent func(ctx context.Context, env *Env) error
}

// Checks is the whole contract.
//
// To add a check: 1. its function in the file of its idea and a line in that
// file's table, 2. a defect in package fake that fails it and nothing else.
func Checks() []Check {
	return slices.Concat(lifecycle(), recovery(), workspace(), surroundings(), concurrency(), traits(), isolation(), optional(), snapshots(), live(), lent(), trash())
}

// checkTime bounds one check. A driver that hangs is wrong, not slow.
const checkTime = 5 * time.Minute

// Perform runs the part of the check that the driver's declaration asks for.
func (c Check) Perform(ctx context.Context, env *Env) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if c.Needs == nil || c.Needs(env.Driver().Capabilities()) {
		return c.Run(ctx, env)
	}
	return c.Absent(ctx, env)
}

// RunTests holds a driver to the contract. If the driver says that this machine
// lacks what it needs, the tests are skipped with its reason, and fail if
// LITTERBOX_TEST_REQUIRE (comma-separated) names the driver.
func RunTests(t *testing.T, newEnv func(t testing.TB) Env) {
	gate(t, newEnv(t))
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			env := newEnv(t)
			if err := check.Perform(t.Context(), &env); err != nil {
				t.Errorf("%v\nwhy it matters: %s", err, check.Why)
			}
		})
	}
}

// gate skips what this machine cannot do.
func gate(tb testing.TB, env Env) {
	tb.Helper()
	d := env.Driver()
	tiers := d.Capabilities().Isolation
	if slices.ContainsFunc(tiers, func(tier driver.Tier) bool { return tier.Available }) {
		return
	}
	reason := "driver " + d.Name() + " cannot run here"
	for _, tier := range tiers {
		reason += ": " + strings.Join(append(tier.Missing, tier.Mend...), "; ")
	}
	if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), d.Name()) {
		tb.Fatal(reason)
	}
	tb.Skip(reason)
}

// RunBenchmarks measures the costs of every command.
func RunBenchmarks(b *testing.B, newEnv func(tb testing.TB) Env) {
	env := newEnv(b)
	gate(b, env)
	ctx := b.Context()
	b.Run("acquire, hello, destroy", func(b *testing.B) {
		for b.Loop() {
			if err := with(ctx, &env, "bench-acquire", func(p *place) error {
				_, err := p.greet(ctx)
				return err
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("exec true", func(b *testing.B) {
		if err := with(ctx, &env, "bench-exec", func(p *place) error {
			link, err := p.connect(ctx, p.driver)
			if err != nil {
				return err
			}
			for b.Loop() {
				if _, err := execute(ctx, link, command{argv: []string{"true"}}); err != nil {
					return errors.Join(err, link.Close())
				}
			}
			return link.Close()
		}); err != nil {
			b.Fatal(err)
		}
	})
}

// wrong describes what a check found.
func wrong(format string, args ...any) error { return fault.New(fault.Internal, format, args...) }
