package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/ledger"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// saveCosts records for the keeper the cost settings of the human's own
// configuration. Without any there is no file.
func (p *place) saveCosts() error {
	c := p.config.Cost
	costs := keeper.Costs{Meter: c.Meter, DayBudget: c.DayBudget, Hosts: c.Hosts, Prices: c.Prices}
	path := p.path(keeper.CostFile)
	if reflect.DeepEqual(costs, keeper.Costs{}) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "cannot write what the calls of sandbox %q may cost", p.record.Name)
		}
		return nil
	}
	data, err := seal.Encode(costs)
	temp := p.path("." + keeper.CostFile)
	if err == nil {
		err = os.WriteFile(temp, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write what the calls of sandbox %q may cost", p.record.Name)
	}
	return nil
}

// The columns that a cost report is divided by.
const (
	CostByModel   = "model"
	CostByDay     = "day"
	CostBySandbox = "sandbox"
)

// CostRequest asks what model calls have cost.
type CostRequest struct {
	Dir   string
	Name  string // of one sandbox, also of one that is deleted; empty for all of the repository
	All   bool   // of all repositories
	Since time.Time
	By    string // CostByModel, CostByDay, CostBySandbox
}

// CostRow is one line of a report.
type CostRow struct {
	Sandbox    string `json:"sandbox"` // empty where it is divided by something else
	Repository string `json:"repository"`
	Model      string `json:"model"`
	Day        string `json:"day"`
	Cost
}

// Cost is the sum of model calls.
type Cost = ledger.Row

// Money is an amount in billionths of a dollar.
type Money = meter.Money

// CostReport says what model calls have cost.
type CostReport struct {
	Rows  []CostRow `json:"rows"`
	Total Cost      `json:"total"`
	// Budget is the sandbox's budget, and DayBudget that of all sandboxes for one
	// day; empty for none.
	Budget    string `json:"budget"`
	DayBudget string `json:"day_budget"`
}

// Cost reports what model calls have cost.
func (e *Engine) Cost(ctx context.Context, request CostRequest) (CostReport, error) {
	report := CostReport{Rows: []CostRow{}}
	gitDir := ""
	if !request.All {
		var err error
		if gitDir, err = gitDirOf(ctx, request.Dir); err != nil {
			return report, err
		}
	}
	name := ""
	if request.Name != "" {
		var err error
		if name, err = sandbox.Slug(request.Name); err != nil {
			return report, err
		}
	}
	want := func(entry ledger.Entry) bool {
		return (request.All || entry.Repository == gitDir) && (name == "" || entry.Sandbox == name) && !entry.Time.Before(request.Since)
	}
	var key func(ledger.Keys) ledger.Keys
	switch request.By {
	case CostByModel:
		key = func(k ledger.Keys) ledger.Keys { return ledger.Keys{Model: k.Model} }
	case CostByDay:
		key = func(k ledger.Keys) ledger.Keys { return ledger.Keys{Day: k.Day} }
	case CostBySandbox, "":
		key = func(k ledger.Keys) ledger.Keys { return ledger.Keys{Sandbox: k.Sandbox, Repository: k.Repository} }
	default:
		return report, fault.New(fault.Invalid, "cannot divide costs by %q", request.By).
			WithHint("litterbox cost --by %s, --by %s or --by %s", CostByModel, CostByDay, CostBySandbox)
	}
	groups, err := ledger.Report(e.ledgerDir(), want, key)
	if err != nil {
		return report, err
	}
	for _, group := range groups {
		report.Rows = append(report.Rows, CostRow{
			Sandbox: group.Sandbox, Repository: strings.TrimSuffix(group.Repository, "/.git"), Model: group.Model, Day: group.Day, Cost: group.Row,
		})
		report.Total = report.Total.Add(group.Row)
	}
	if name != "" && len(report.Rows) == 0 {
		if exists, err := e.Exists(ctx, request.Dir, name); err == nil && !exists {
			return report, fault.New(fault.NotFound, "there is no sandbox %q, and nothing that one of that name has cost%s", name,
				didYouMean(name, e.sandboxNames(ctx, request.Dir))).WithHint("litterbox cost")
		}
	}
	return report, e.budgets(ctx, request, &report)
}

// budgets fills in what bounds the costs of a report.
func (e *Engine) budgets(ctx context.Context, request CostRequest, report *CostReport) error {
	if user, err := config.LoadUser(callerOf(ctx)); err == nil {
		report.DayBudget = user.Cost.DayBudget.String()
	}
	if request.Name == "" {
		return nil
	}
	p, err := e.find(ctx, request.Dir, request.Name)
	if fault.KindOf(err) == fault.NotFound {
		return nil // it is deleted
	}
	if err != nil {
		return err
	}
	rules, err := p.ownRules()
	report.Budget = rules.Effective.Budget.String()
	return err
}

func (e *Engine) ledgerDir() string { return filepath.Join(e.Store.Root, keeper.LedgerDir) }

// costs adds up what each sandbox has cost so far, by its id.
func (e *Engine) costs() (map[string]*Cost, error) {
	rows, err := ledger.Totals(e.ledgerDir())
	all := make(map[string]*Cost, len(rows))
	for id, row := range rows {
		if row.Calls > 0 {
			all[id] = &row
		}
	}
	return all, err
}
