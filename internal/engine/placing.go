package engine

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Placing chooses, for each new sandbox, one of several machines by what they have
// free. It asks them once, when it is made, and counts what it has placed since. It
// is safe for concurrent use. A nil one chooses nothing.
type Placing struct {
	// Notes say which machines take no sandboxes now, and why.
	Notes []string

	mu   sync.Mutex
	rows []*placingRow
}

// placingRow is one machine that takes sandboxes.
type placingRow struct {
	name   string
	status machine.Status
	placed int
}

// memoryOfOne is the memory that weighs as much as one processor.
const memoryOfOne = 2 << 30

// share is the next sandbox's share of a machine, in processors, if all the
// sandboxes that this command has placed there were as busy as it.
func (r placingRow) share() float64 {
	processors := float64(r.status.Processors)
	// A load that falls with the next minute must not rule a machine out.
	free := max(processors-max(r.status.Load, 0), processors/10)
	if r.status.Memory >= 0 {
		free = min(free, float64(r.status.Memory)/memoryOfOne)
	}
	return free / float64(r.placed+1)
}

// Placing asks machines what they have free. Those that do not answer, and those
// that isolate less than fully, are left out with a note; with none left it fails.
func (e *Engine) Placing(ctx context.Context, machines []string) (*Placing, error) {
	if len(machines) == 0 {
		return nil, nil
	}
	var names []string
	for _, name := range machines {
		if name = strings.TrimSpace(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := e.knownMachine(name); err != nil {
			return nil, err
		}
	}
	defer e.busy("asking machines what they have free")()
	type answer struct {
		status machine.Status
		err    error
	}
	answers := make([]answer, len(names))
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() { answers[i].status, answers[i].err = e.Machines.Status(ctx, name) })
	}
	asking.Wait()
	p := &Placing{}
	for i, name := range names {
		status, err := answers[i].status, answers[i].err
		switch {
		case fault.KindOf(err) == fault.NotFound || fault.KindOf(err) == fault.Canceled:
			return nil, err // an unknown name, or the end of the context
		case err != nil:
			p.Notes = append(p.Notes, "the machine "+name+" takes no sandbox now: "+err.Error())
		case status.Isolation != sandbox.IsolationFull:
			p.Notes = append(p.Notes, "the machine "+name+" takes no sandbox: full isolation is not available there; see litterbox machine test "+name)
		default:
			p.rows = append(p.rows, &placingRow{name: name, status: status})
		}
	}
	if len(p.rows) == 0 {
		return nil, fault.New(fault.Unavailable, "cannot choose a machine: %s", strings.Join(p.Notes, "; ")).WithHint("litterbox machine test %s", names[0])
	}
	return p, nil
}

// Take chooses the machine with the most left for one more sandbox, the first of
// those that are equal, and returns the driver of its sandboxes.
func (p *Placing) Take() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	best := p.rows[0]
	for _, row := range p.rows[1:] {
		if row.share() > best.share() {
			best = row
		}
	}
	best.placed++
	return driver.OnMachine(best.name)
}

// Give takes back a choice of Take: that sandbox is done.
func (p *Placing) Give(taken string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range p.rows {
		if driver.OnMachine(row.name) == taken && row.placed > 0 {
			row.placed--
		}
	}
}
