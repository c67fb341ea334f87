package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress/metering"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ledger"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// CostFile holds what the human's own configuration says about costs, in the
// directory of a sandbox. The engine writes it before each start and with each
// change of limits; without it the configuration says nothing.
const CostFile = "cost.json"

// LedgerDir is the ledger of costs, below the state directory.
const LedgerDir = "cost"

// Costs is the content of CostFile.
type Costs struct {
	Meter     bool                   `json:"meter,omitempty"`
	DayBudget sandbox.Budget         `json:"day_budget,omitzero"`
	Hosts     []string               `json:"hosts,omitempty"`
	Prices    map[string]meter.Price `json:"prices,omitempty"`
}

// ReadCosts reads CostFile of the sandbox in dir.
func ReadCosts(dir string) (Costs, error) {
	var costs Costs
	data, err := os.ReadFile(filepath.Join(dir, CostFile))
	if errors.Is(err, fs.ErrNotExist) {
		return costs, nil
	}
	if err == nil {
		err = seal.Decode(data, &costs)
	}
	if err != nil {
		return Costs{}, fault.Wrap(fault.Unavailable, err, "cannot read what the sandbox's calls of models may cost")
	}
	return costs, nil
}

// Looks reports whether the record of the sandbox in dir has calls of models
// inspected. A damaged one may have had a budget: the keeper that runs knows it.
func Looks(dir string) (bool, error) {
	costs, err := ReadCosts(dir)
	rules, rulesErr := ReadRules(dir)
	if err = errors.Join(err, rulesErr); errors.Is(err, seal.ErrDamaged) {
		return true, nil
	}
	return costs.Meter || costs.DayBudget.Bounds() || rules.Effective.Budget.Bounds(), err
}

// costs meters the calls of models that leave the sandbox.
type costs struct {
	hook *metering.Hook
	book *ledger.Book
	who  ledger.Entry

	mu   sync.Mutex
	now  metering.Settings
	used bool      // a call was seen, so processor time matters
	next time.Time // when that is next written down
}

// noted is how often processor time goes into the ledger.
const noted = time.Minute

// openCosts prepares metering, which costs nothing until a call comes.
func (k *keeper) openCosts() error {
	c := &costs{
		book: ledger.Open(filepath.Join(k.order.StoreRoot, LedgerDir)),
		who:  ledger.Entry{SandboxID: k.order.Spec.SandboxID, Sandbox: k.order.Spec.Name, Repository: k.order.Repository},
	}
	c.hook = metering.New(metering.Options{
		Settings: c.settings, Book: c.book, Sandbox: c.who, Scratch: k.order.Spec.StateDir,
		Seen:    c.seen,
		Refused: func(why string) { k.supervisor.refused(why) },
		Failed:  func(err error) { fmt.Fprintln(os.Stderr, "keeper: what a call cost was not written down:", err) },
	})
	k.costs = c
	return k.loadCosts()
}

func (k *keeper) loadCosts() error {
	read, err := ReadCosts(k.order.Spec.StateDir)
	if err != nil {
		return err
	}
	k.mu.Lock()
	budget := k.rules.Effective.Budget
	k.mu.Unlock()
	k.costs.mu.Lock()
	defer k.costs.mu.Unlock()
	k.costs.now = metering.Settings{
		Meter: read.Meter, Hosts: read.Hosts, Prices: meter.Prices{Own: read.Prices},
		Budgets: ledger.Budgets{Sandbox: budget, Day: read.DayBudget},
	}
	return nil
}

// changeCosts puts other budgets in force, also for live connections.
func (k *keeper) changeCosts() error {
	if err := k.loadCosts(); err != nil {
		return err
	}
	return k.net.reload()
}

func (c *costs) settings() metering.Settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *costs) seen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = true
}

// due reports whether processor time must be written down.
func (c *costs) due(last bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.used || !last && time.Now().Before(c.next) {
		return false
	}
	c.next = time.Now().Add(noted)
	return true
}

// noteCompute writes down the processor time since this start of the sandbox,
// beside the cost of its calls. At most a minute is lost with a keeper, and the
// next one writes the whole sum again.
func (k *keeper) noteCompute(ctx context.Context, last bool) {
	if !k.costs.due(last) {
		return
	}
	m, err := k.driver.CollectMetrics(ctx, k.driverLease())
	if err != nil {
		return // nothing to say
	}
	e := k.costs.who
	k.mu.Lock()
	e.ID = k.lease.ID + "-" + strconv.FormatInt(k.lease.AcquiredAt.Unix(), 10)
	k.mu.Unlock()
	e.Kind, e.CPU, e.Running = ledger.Compute, max(0, m.CPU), max(0, m.Uptime)
	if err := k.costs.book.Append(ctx, e); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: the time of the processor was not written down:", err)
	}
}

// refused remembers that a budget was reached.
func (s *supervisor) refused(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report(ReachedBudget, why)
}
