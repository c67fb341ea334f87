package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/ledger"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func money(m meter.Money) *meter.Money { return &m }

func call(id string, most meter.Money, tokens int64) ledger.Entry {
	return ledger.Entry{SandboxID: id, Sandbox: "fix-" + id, Repository: "/r/.git", Host: "api.anthropic.com", Wire: meter.Messages, Model: "m", MaxTokens: tokens, MaxCost: money(most)}
}

func usd(dollars int64) ledger.Budgets {
	return ledger.Budgets{Sandbox: sandbox.Budget{USD: dollars * int64(meter.Dollar)}}
}

// Calls at the same moment, from several processes as it were, never reserve
// more than the budget together.
func TestParallelCallsCannotOvershoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cost")
	var admitted, refused atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		book := ledger.Open(dir)
		for range 10 {
			all.Go(func() {
				_, err := book.Reserve(call("a", meter.Dollar, 10), usd(7))
				var exceeded *ledger.Exceeded
				switch {
				case err == nil:
					admitted.Add(1)
				case errors.As(err, &exceeded):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if admitted.Load() != 7 || refused.Load() != 33 {
		t.Errorf("%d calls of a dollar were admitted and %d refused, with 7 dollars", admitted.Load(), refused.Load())
	}
}

func TestBudgets(t *testing.T) {
	book := ledger.Open(t.TempDir())
	reserve := func(e ledger.Entry, b ledger.Budgets) ledger.Entry {
		t.Helper()
		got, err := book.Reserve(e, b)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	refuse := func(e ledger.Entry, b ledger.Budgets, want string) {
		t.Helper()
		var exceeded *ledger.Exceeded
		if _, err := book.Reserve(e, b); !errors.As(err, &exceeded) || !strings.Contains(err.Error(), want) {
			t.Fatalf("the error is %v, want %q", err, want)
		}
	}
	settle := func(e ledger.Entry, end string, u meter.Usage, cost *meter.Money) {
		t.Helper()
		if err := book.Append(ledger.Settle(e, end, 200, "", u, cost, 0)); err != nil {
			t.Fatal(err)
		}
	}
	one := reserve(call("a", 4*meter.Dollar, 100), usd(5))
	refuse(call("a", 2*meter.Dollar, 100), usd(5), "of 5 USD, $4.00 are spent or reserved")
	reserve(call("b", 2*meter.Dollar, 100), usd(5)) // another sandbox has its own
	settle(one, ledger.Exact, meter.Usage{Input: 9}, money(meter.Dollar))
	settle(one, ledger.Exact, meter.Usage{}, money(0)) // twice settles nothing more
	two := reserve(call("a", 4*meter.Dollar, 100), usd(5))
	refuse(call("a", 1, 1), usd(5), "$5.00 are spent")

	// Cut off: it counts as the most that it may have cost.
	settle(two, ledger.Cut, meter.Usage{Output: 3}, money(1))
	refuse(call("a", 1, 1), usd(5), "$5.00 are spent")
	// One that was never sent costs nothing.
	three := reserve(call("a", meter.Dollar, 1), usd(6))
	settle(three, ledger.Unsent, meter.Usage{}, nil)
	reserve(call("a", meter.Dollar, 1), usd(6))

	// Tokens, and the day over all sandboxes.
	refuse(call("a", 0, 1000), ledger.Budgets{Sandbox: sandbox.Budget{Tokens: 500}}, "this call of m may cost up to 1000 tokens")
	refuse(call("c", 2*meter.Dollar, 1), ledger.Budgets{Day: sandbox.Budget{USD: 9 * int64(meter.Dollar)}}, "the budget of today for all sandboxes of 9 USD, $8.00")
	reserve(call("c", meter.Dollar, 1), ledger.Budgets{Day: sandbox.Budget{USD: 9 * int64(meter.Dollar)}})

	// While it runs a call may come to more than was reserved.
	four := reserve(call("d", meter.Dollar, 1), usd(3))
	if err := book.Over(four, ledger.Amount{Cost: 3 * meter.Dollar}, usd(3)); err != nil {
		t.Error(err)
	}
	if err := book.Over(four, ledger.Amount{Cost: 3*meter.Dollar + 1}, usd(3)); err == nil {
		t.Error("a call goes on beyond the budget")
	}
}

// A crash may tear the last line at any byte: what stands before it stays, and
// the next line is whole.
func TestACrashShortensNothing(t *testing.T) {
	dir := t.TempDir()
	book := ledger.Open(dir)
	for range 3 {
		if _, err := book.Reserve(call("a", meter.Dollar, 1), ledger.Budgets{}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	for _, cut := range []int{begin + 1, begin + 40, len(whole) - 3, len(whole) - 1} {
		if err := os.WriteFile(files[0], whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		again := ledger.Open(dir)
		kept := meter.Money(2)
		if cut == len(whole)-1 {
			kept = 3 // only the end of the line is missing
		}
		if _, err := again.Reserve(call("a", (5-kept)*meter.Dollar, 1), usd(5)); err != nil {
			t.Errorf("torn at byte %d: %v", cut-begin, err)
		}
		if _, err := again.Reserve(call("a", 1, 1), usd(5)); err == nil {
			t.Errorf("torn at byte %d: what was reserved before does not count", cut-begin)
		}
		n := 0
		if err := ledger.Read(dir, func(ledger.Entry) bool { n++; return true }); err != nil || n != int(kept)+1 {
			t.Errorf("torn at byte %d: %d lines can be read (%v)", cut-begin, n, err)
		}
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	book := ledger.Open(dir)
	done := func(e ledger.Entry, end, model string, u meter.Usage, cost *meter.Money) {
		t.Helper()
		e, err := book.Reserve(e, ledger.Budgets{})
		if err == nil && end != "" {
			err = book.Append(ledger.Settle(e, end, 200, model, u, cost, 0))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	done(call("a", 10, 10), ledger.Exact, "m-2025", meter.Usage{Input: 5, Output: 1}, money(7))
	done(call("a", 10, 10), ledger.Cut, "m-2025", meter.Usage{Input: 2}, money(3))
	done(call("a", 10, 10), ledger.Unsent, "", meter.Usage{}, nil)
	done(call("a", 10, 10), "", "", meter.Usage{}, nil)
	done(call("b", 10, 10), ledger.Exact, "own", meter.Usage{Input: 100}, nil)
	for _, soFar := range []time.Duration{time.Second, 3 * time.Second} { // each the sum since the start
		if err := book.Append(ledger.Entry{Kind: ledger.Compute, ID: "start", SandboxID: "a", Sandbox: "fix-a", Repository: "/r/.git", CPU: soFar, Running: 2 * soFar}); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := ledger.Report(dir, func(ledger.Entry) bool { return true }, func(k ledger.Keys) ledger.Keys { return ledger.Keys{Sandbox: k.Sandbox} })
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.Group{
		{Keys: ledger.Keys{Sandbox: "fix-a"}, Row: ledger.Row{Calls: 3, Usage: meter.Usage{Input: 7, Output: 1}, Cost: 10, Open: 2, OpenCost: 17, CPU: 3 * time.Second, Running: 6 * time.Second}},
		{Keys: ledger.Keys{Sandbox: "fix-b"}, Row: ledger.Row{Calls: 1, Usage: meter.Usage{Input: 100}, Unpriced: 100}},
	}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
