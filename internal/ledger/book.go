package ledger

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Book is the ledger in one directory, open for writing. It is safe for
// concurrent use, and any number of processes may have it open.
type Book struct {
	dir string

	mu    sync.Mutex // guards the fields below; never held while waiting for the directory's lock
	tally *tally
	read  map[string]int64 // how far each file was read
}

// Open uses dir, which is made when the first line is written.
func Open(dir string) *Book {
	return &Book{dir: dir, tally: newTally(), read: map[string]int64{}}
}

// Budgets are the limits that a call may not exceed.
type Budgets struct {
	Sandbox sandbox.Budget // of the calling sandbox, in all
	Day     sandbox.Budget // of all of them together, on this day
}

// Bounds reports whether there is any.
func (b Budgets) Bounds() bool { return b.Sandbox.Bounds() || b.Day.Bounds() }

// Exceeded is the error of a call for which not enough is left, worded for the
// client that made it.
type Exceeded struct{ Why string }

func (e *Exceeded) Error() string { return e.Why }

// Reserve writes down the most that a call may cost, unless that would go beyond
// a budget; then the error is an *Exceeded and nothing is written. It is on the
// disk when Reserve returns. The wait for other writers ends with ctx.
func (b *Book) Reserve(ctx context.Context, e Entry, budgets Budgets) (Entry, error) {
	e.Kind, e.Time, e.ID = Reserved, time.Now(), newID()
	return e, b.locked(ctx, func() error {
		if budgets.Bounds() {
			if err := b.catchUp(); err != nil {
				return err
			}
			most := Amount{Tokens: e.MaxTokens}
			if e.MaxCost != nil {
				most.Cost = *e.MaxCost
			}
			if err := b.judge(e, most, budgets); err != nil {
				return err
			}
		}
		return b.append(e)
	})
}

// Over reports whether a call whose cost so far exceeds its reservation goes
// beyond a budget.
func (b *Book) Over(e Entry, so Amount, budgets Budgets) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.catchUp(); err != nil {
		return err
	}
	if h, open := b.tally.open[e.ID]; open { // its reservation counts already
		so = so.less(h.amount)
	}
	return b.judge(e, so, budgets)
}

// judge checks whether that much more is left.
func (b *Book) judge(e Entry, more Amount, budgets Budgets) error {
	for _, one := range []struct {
		budget sandbox.Budget
		spent  Amount
		of     string
		mend   string
	}{
		{budgets.Sandbox, b.tally.sandboxes[e.SandboxID], fmt.Sprintf("the budget of sandbox %s", e.Sandbox), "litterbox limits " + e.Sandbox + " budget=..."},
		{budgets.Day, b.tally.days[Day(e.Time)], "the budget of today for all sandboxes", "cost.day-budget in your own configuration"},
	} {
		unit, over := one.spent.add(more).beyond(one.budget)
		if !over {
			continue
		}
		call, spent := more.Cost.String(), one.spent.Cost.String()
		if unit == "tokens" {
			call, spent = fmt.Sprintf("%d tokens", more.Tokens), fmt.Sprintf("%d tokens", one.spent.Tokens)
		}
		return &Exceeded{fmt.Sprintf("litterbox: this call of %s may cost up to %s, and of %s of %s, %s are spent or reserved (on the host, %s allows more; fewer output tokens make a call cost less)",
			e.Model, call, one.of, one.budget, spent, one.mend)}
	}
	return nil
}

// Append writes a line that reserves nothing. It is on the disk when it returns.
// The wait for other writers ends with ctx.
func (b *Book) Append(ctx context.Context, e Entry) error {
	e.Time = time.Now()
	return b.locked(ctx, func() error { return b.append(e) })
}

// locked calls do while no other caller, of this process or another, is in it.
func (b *Book) locked(ctx context.Context, do func() error) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return unavailable(err)
	}
	file, err := os.OpenFile(filepath.Join(b.dir, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return unavailable(err)
	}
	defer file.Close() // which releases the lock
	if err := lock.File(ctx, file); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return do()
}

// append is called with the lock held.
func (b *Book) append(e Entry) error {
	e.Version = Version
	data, err := json.Marshal(e)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot encode a line of the ledger")
	}
	path := filepath.Join(b.dir, e.Time.UTC().Format("2006-01")+suffix)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return unavailable(err)
	}
	line := append(seal.Line(data), '\n')
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...) // a crash has torn the line before
		}
	}
	_, err = file.Write(line)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return unavailable(err)
	}
	return nil
}

// catchUp reads the lines written since the last call.
func (b *Book) catchUp() error {
	paths, err := files(b.dir)
	if err != nil {
		return err
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return unavailable(err)
		}
		_, err = file.Seek(b.read[path], io.SeekStart)
		var data []byte
		if err == nil {
			data, err = io.ReadAll(file)
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return unavailable(err)
		}
		whole := data[:bytes.LastIndexByte(data, '\n')+1]
		b.read[path] += int64(len(whole))
		each(whole, func(e Entry) bool { b.tally.take(e); return true })
	}
	b.tally.forget(time.Now())
	return nil
}

const suffix = ".jsonl"

// files lists the ledger's files, oldest first.
func files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	var paths []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), suffix); ok && len(name) == len("2006-01") {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// Read hands every entry to one, oldest first, until it returns false. Lines that
// a crash has torn are left out.
func Read(dir string, one func(Entry) bool) error {
	paths, err := files(dir)
	if err != nil {
		return err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return unavailable(err)
		}
		if !each(data, one) {
			return nil
		}
	}
	return nil
}

func each(data []byte, one func(Entry) bool) bool {
	for line := range bytes.Lines(data) {
		var e Entry
		if len(bytes.TrimSpace(line)) == 0 || seal.Decode(line, &e) != nil {
			continue
		}
		if !one(e) {
			return false
		}
	}
	return true
}

func unavailable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "cannot use the ledger of costs")
}

func newID() string { return strings.ToLower(rand.Text()) }

// Settle is the line that settles the reservation e.
func Settle(e Entry, end string, status int, model string, usage meter.Usage, cost *meter.Money, took time.Duration) Entry {
	e.Kind, e.End, e.Status, e.Usage, e.Cost, e.Took = Settled, end, status, &usage, cost, took
	if model != "" {
		e.Model = model
	}
	e.MaxTokens, e.MaxCost = 0, nil
	return e
}
