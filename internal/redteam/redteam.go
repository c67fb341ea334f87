// Package redteam attacks the sandboxes of the machine that it runs on: each
// [Attack] does something that an escape would make possible, once in a
// throwaway sandbox, where it must fail, and once as an unhindered control,
// where it must succeed. So a check cannot pass by being broken.
//
// It runs this very program from outside, as a user types it, with a home, a
// state directory and a repository of its own below a temporary directory. It
// takes bounded time, memory and disk, and talks only to itself.
//
// To add an attack: 1. its row in package threat, 2. an entry in the file of its
// class, 3. the page: go test ./internal/redteam -update. Start reading at [Attacks] and [Run].
package redteam

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// Attack is one way out: a row of the table, or a variant of one, and the way
// it is tried here.
type Attack struct {
	threat.Attack
	// name is that of the row, perhaps with a variant after a colon.
	name string

	// control is the place where the same must succeed; the zero value is the
	// machine itself, in directories of the world.
	control kind
	// full says why it means something only in the full tier.
	full string
	// near says why it means something only where the files of a sandbox, and what it
	// would escape to, are on this machine.
	near string
	// skip returns the reason why this machine cannot show it, or nothing.
	skip func(*world) string
	// limits are those of a sandbox of its own; fresh gives it one too.
	limits []string
	fresh  bool

	try func(context.Context, *world, place) (outcome, error)
}

// outcome is the outcome of an attempt.
type outcome struct {
	escaped bool
	seen    string
}

// Verdict is the result of an attack.
type Verdict string

// The verdicts.
const (
	Closed  Verdict = "closed"
	Open    Verdict = "open"
	Skipped Verdict = "skipped"
)

// Result is the result of one attack.
type Result struct {
	Class   Class   `json:"class"`
	Attack  string  `json:"attack"`
	Escape  string  `json:"escape"`
	Seen    string  `json:"seen"`    // in the sandbox
	Control string  `json:"control"` // where nothing hinders it
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"` // of a skipped one
	Defence string  `json:"defence"`
}

// Report is the result of all attacks.
type Report struct {
	Driver    string   `json:"driver"`
	Isolation string   `json:"isolation"`
	Attacks   []Result `json:"attacks"`
	Closed    int      `json:"closed"`
	Open      int      `json:"open"`
	Skipped   int      `json:"skipped"`
}

// Options say what to attack.
type Options struct {
	Driver string // one of [Drivers]; empty for the one that create would take
	Only   Class  // empty for all
	// Machine is attacked instead of a driver of this machine.
	Machine *Machine
	// BaseImage is that of containers; empty for the one that create would take.
	BaseImage string
	Env       func(string) string

	// Began is called before each attack.
	Began func(class Class, attack string, done, total int)
	// Ended is called after each attack.
	Ended func(Result)
}

const (
	// patience bounds one attempt, even on a busy machine.
	patience = 2 * time.Minute
	// cleaning bounds the deletion of all sandboxes, even on a busy machine.
	cleaning = 5 * time.Minute
)

// Run attacks. Everything it made is gone when it returns, even after ctx has ended.
func Run(ctx context.Context, o Options) (report Report, err error) {
	if o.Only != "" && !slices.Contains(Classes(), o.Only) {
		return report, fault.New(fault.Invalid, "cannot attack %q: there is no such class", o.Only).WithHint("litterbox redteam --help")
	}
	if runtime.GOOS != "linux" {
		return report, fault.New(fault.Unsupported, "cannot attack sandboxes from %s: the probe and its controls need Linux", runtime.GOOS)
	}
	w, err := newWorld(ctx, o)
	if w != nil {
		defer func() {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
			defer cancel()
			err = errors.Join(err, w.end(ending))
		}()
	}
	if err != nil {
		return report, err
	}
	report.Driver, report.Isolation = w.driver, w.isolation
	attacks := slices.DeleteFunc(Attacks(), func(a Attack) bool { return o.Only != "" && a.Class != o.Only })
	for i, a := range attacks {
		o.Began(a.Class, a.name, i, len(attacks))
		result := w.attack(ctx, a)
		if err := ctx.Err(); err != nil {
			return report, fault.New(fault.Canceled, "cannot finish the attacks: interrupted; nothing is left of them")
		}
		report.Attacks = append(report.Attacks, result)
		switch result.Verdict {
		case Closed:
			report.Closed++
		case Open:
			report.Open++
		case Skipped:
			report.Skipped++
		}
		o.Ended(result)
	}
	return report, nil
}

// attack tries a where it must fail and where it must succeed. An escape counts
// whatever the control says; without the control a failure proves nothing.
func (w *world) attack(ctx context.Context, a Attack) Result {
	result := Result{Class: a.Class, Attack: a.name, Escape: a.Escape, Defence: strings.Join(a.Defence, ", "), Verdict: Skipped}
	if a.full != "" && w.isolation != "full" {
		result.Reason = a.full
		return result
	}
	if a.near != "" && w.tier.far {
		result.Reason = a.near
		return result
	}
	if a.skip != nil {
		if result.Reason = a.skip(w); result.Reason != "" {
			return result
		}
	}
	inside, err := w.attempt(ctx, a, sandboxed)
	result.Seen = inside.seen
	switch {
	case err != nil:
		result.Reason = "the attack could not be tried: " + err.Error()
		return result
	case inside.escaped:
		result.Verdict = Open
	}
	outside, err := w.attempt(ctx, a, a.control)
	result.Control = outside.seen
	switch {
	case result.Verdict == Open:
	case err != nil:
		result.Reason = "the control could not be tried: " + err.Error()
	case !outside.escaped:
		result.Reason = "the control does not succeed either, so nothing is shown"
	default:
		result.Verdict = Closed
	}
	return result
}

func (w *world) attempt(ctx context.Context, a Attack, where kind) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := w.place(ctx, a, where)
	if err != nil {
		return outcome{}, err
	}
	got, err := a.try(ctx, w, p)
	if ctx.Err() != nil {
		return got, errors.New("it did not end within " + patience.String())
	}
	return got, err
}
