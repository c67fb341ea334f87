package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ledger"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

func money(m meter.Money) *meter.Money { return &m }

func call(id string, most meter.Money, tokens int64) ledger.Entry {
	return ledger.Entry{SandboxID: id, Sandbox: "fix-" + id, Repository: "/r/.git", Host: "api.anthropic.com", Wire: meter.Messages, Model: "m", MaxTokens: tokens, MaxCost: money(most)}
}

func usd(dollars int64) ledger.Budgets {
	return ledger.Budgets{Sandbox: sandbox.Budget{USD: dollars * int64(meter.Dollar)}}
}

// Simultaneous calls, as if from several processes, never reserve more than the
// budget together.
func TestParallelCallsCannotOvershoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cost")
	var admitted, refused atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		book := ledger.Open(dir)
		for range 10 {
			all.Go(func() {
				_, err := book.Reserve(t.Context(), call("a", meter.Dollar, 10), usd(7))
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
		got, err := book.Reserve(t.Context(), e, b)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	refuse := func(e ledger.Entry, b ledger.Budgets, want string) {
		t.Helper()
		var exceeded *ledger.Exceeded
		if _, err := book.Reserve(t.Context(), e, b); !errors.As(err, &exceeded) || !strings.Contains(err.Error(), want) {
			t.Fatalf("the error is %v, want %q", err, want)
		}
	}
	settle := func(e ledger.Entry, end string, u meter.Usage, cost *meter.Money) {
		t.Helper()
		if err := book.Append(t.Context(), ledger.Settle(e, end, 200, "", u, cost, 0)); err != nil {
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
	// A call that was never sent costs nothing.
	three := reserve(call("a", meter.Dollar, 1), usd(6))
	settle(three, ledger.Unsent, meter.Usage{}, nil)
	reserve(call("a", meter.Dollar, 1), usd(6))

	// Tokens, and the day over all sandboxes.
	refuse(call("a", 0, 1000), ledger.Budgets{Sandbox: sandbox.Budget{Tokens: 500}}, "this call of m may cost up to 1000 tokens")
	refuse(call("c", 2*meter.Dollar, 1), ledger.Budgets{Day: sandbox.Budget{USD: 9 * int64(meter.Dollar)}}, "the budget of today for all sandboxes of 9 USD, $8.00")
	reserve(call("c", meter.Dollar, 1), ledger.Budgets{Day: sandbox.Budget{USD: 9 * int64(meter.Dollar)}})

	// A running call may cost more than its reservation.
	four := reserve(call("d", meter.Dollar, 1), usd(3))
	if err := book.Over(four, ledger.Amount{Cost: 3 * meter.Dollar}, usd(3)); err != nil {
		t.Error(err)
	}
	if err := book.Over(four, ledger.Amount{Cost: 3*meter.Dollar + 1}, usd(3)); err == nil {
		t.Error("a call goes on beyond the budget")
	}
}

// A crash may tear the last line at any byte: the lines before it stay, and the
// next line is whole.
func TestACrashShortensNothing(t *testing.T) {
	dir := t.TempDir()
	book := ledger.Open(dir)
	for range 3 {
		if _, err := book.Reserve(t.Context(), call("a", meter.Dollar, 1), ledger.Budgets{}); err != nil {
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
		if _, err := again.Reserve(t.Context(), call("a", (5-kept)*meter.Dollar, 1), usd(5)); err != nil {
			t.Errorf("torn at byte %d: %v", cut-begin, err)
		}
		if _, err := again.Reserve(t.Context(), call("a", 1, 1), usd(5)); err == nil {
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
		e, err := book.Reserve(t.Context(), e, ledger.Budgets{})
		if err == nil && end != "" {
			err = book.Append(t.Context(), ledger.Settle(e, end, 200, model, u, cost, 0))
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
		if err := book.Append(t.Context(), ledger.Entry{Kind: ledger.Compute, ID: "start", SandboxID: "a", Sandbox: "fix-a", Repository: "/r/.git", CPU: soFar, Running: 2 * soFar}); err != nil {
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

// Totals are the sums of the whole ledger, and of a long one only the end is read
// again.
func TestTotals(t *testing.T) {
	dir := t.TempDir()
	book := ledger.Open(dir)
	same := func(what string) map[string]ledger.Row {
		t.Helper()
		groups, err := ledger.Report(dir, func(ledger.Entry) bool { return true }, func(k ledger.Keys) ledger.Keys { return ledger.Keys{SandboxID: k.SandboxID} })
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]ledger.Row{}
		for _, group := range groups {
			want[group.SandboxID] = group.Row
		}
		got, err := ledger.Totals(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-whole +totals):\n%s", what, diff)
		}
		return got
	}
	same("nothing")
	// An older month, long enough to be added up.
	var old strings.Builder
	for n := range 400 {
		e := call("b", meter.Dollar, 10)
		e.Version, e.Kind, e.ID, e.Time = ledger.Version, ledger.Reserved, fmt.Sprint("old", n), time.Now().AddDate(0, -1, 0)
		settled := ledger.Settle(e, ledger.Exact, 200, "", meter.Usage{Input: 7}, money(meter.Dollar/10), time.Second)
		for _, line := range []ledger.Entry{e, settled} {
			data, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			old.Write(append(seal.Line(data), '\n'))
		}
	}
	past := filepath.Join(dir, "2020-01.jsonl")
	if err := os.WriteFile(past, []byte(old.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var open []ledger.Entry
	for range 3 {
		e, err := book.Reserve(t.Context(), call("a", meter.Dollar, 10), ledger.Budgets{})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, e)
	}
	compute := ledger.Entry{Kind: ledger.Compute, ID: "start", SandboxID: "a", CPU: time.Second, Running: time.Minute}
	if err := book.Append(t.Context(), compute); err != nil {
		t.Fatal(err)
	}
	same("all of it")
	// An open call is settled after it was added up, and a start goes on.
	compute.CPU, compute.Running = 3*time.Second, 2*time.Minute
	for _, e := range []ledger.Entry{ledger.Settle(open[0], ledger.Exact, 200, "", meter.Usage{Input: 1, Output: 2}, money(meter.Dollar/2), 0), compute} {
		if err := book.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	whole := same("the end of it")
	// A line far from the end that is damaged afterwards is not read again.
	damaged := []byte(old.String())
	copy(damaged, "{")
	damaged[1] = '{'
	if err := os.WriteFile(past, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ledger.Totals(dir); err != nil || !cmp.Equal(got, whole) {
		t.Errorf("the beginning is read again: %+v, %v", got, err)
	}
	// Another file in its place is, and a month that is gone no longer counts.
	if err := os.WriteFile(past, []byte(old.String()[:len(old.String())/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	same("half of a month")
	if err := os.Remove(past); err != nil {
		t.Fatal(err)
	}
	if got := same("a month less"); got["b"].Calls != 0 || got["a"].Calls != 3 || got["a"].Open != 2 || got["a"].CPU != 3*time.Second {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "totals.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	same("damaged totals")
}

// A wait for other writers ends with its context, and holds up no reader.
func TestWaitForTheLedgerEnds(t *testing.T) {
	dir := t.TempDir()
	book := ledger.Open(dir)
	held, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := lock.File(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() {
		_, err := book.Reserve(ctx, call("a", meter.Dollar, 10), ledger.Budgets{})
		ended <- err
	}()
	go func() { ended <- book.Append(ctx, call("a", meter.Dollar, 10)) }()
	if err := book.Over(call("a", meter.Dollar, 10), ledger.Amount{}, usd(3)); err != nil {
		t.Errorf("over: %v", err)
	}
	stop()
	for range 2 {
		if err := <-ended; fault.KindOf(err) != fault.Canceled {
			t.Errorf("ended with %v", err)
		}
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := book.Reserve(t.Context(), call("a", meter.Dollar, 10), usd(11)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
