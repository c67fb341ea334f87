package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

func newLog(t *testing.T, entries int) *audit.Log {
	t.Helper()
	l := &audit.Log{Dir: filepath.Join(t.TempDir(), "audit")}
	fill(t, l, entries)
	return l
}

func fill(t *testing.T, l *audit.Log, entries int) {
	t.Helper()
	for i := range entries {
		if err := l.Append(t.Context(), &audit.Entry{Event: audit.EventCall, Action: fmt.Sprintf("action-%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
}

// found verifies and gives the kinds and numbers of the findings.
func found(t *testing.T, l *audit.Log) []string {
	t.Helper()
	report, err := l.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{}
	for _, finding := range report.Findings {
		kinds = append(kinds, fmt.Sprintf("%s %d", finding.Kind, finding.Seq))
	}
	return kinds
}

func TestChain(t *testing.T) {
	t.Parallel()
	l := newLog(t, 0)
	if got := found(t, l); len(got) != 0 {
		t.Errorf("a log without entries: %q", got)
	}
	fill(t, l, 20)
	report, err := l.Verify(t.Context())
	if err != nil || !report.Whole() || report.Entries != 20 || len(report.Findings) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	head, err := l.Head()
	if err != nil || head != report.Head || len(head) != 64 {
		t.Errorf("head %q, %v", head, err)
	}
	next := uint64(1)
	for e, err := range l.Entries() {
		if err != nil || e.Seq != next || e.Action != fmt.Sprintf("action-%d", next-1) {
			t.Errorf("entry %d: %+v, %v", next, e, err)
		}
		next++
	}
	if info, err := os.Stat(l.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Every damage that verification promises to find is found, and named.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(lines []string) []string
		want   []string
	}{
		"nothing": {func(l []string) []string { return l }, []string{}},
		"a changed value": {func(l []string) []string {
			l[4] = strings.Replace(l[4], "action-4", "action-X", 1)
			return l
		}, []string{"changed 5"}},
		"a changed value and a new hash": {func(l []string) []string {
			other := strings.Replace(l[4], "action-4", "action-X", 1)
			l[4] = rehash(other)
			return l
		}, []string{"changed 6"}},
		"one removed":   {func(l []string) []string { return append(l[:4], l[5:]...) }, []string{"removed 6"}},
		"first removed": {func(l []string) []string { return l[1:] }, []string{"removed 2"}},
		"two swapped": {func(l []string) []string {
			l[4], l[5] = l[5], l[4]
			return l
		}, []string{"reordered 6", "reordered 5", "reordered 7"}},
		"last removed":     {func(l []string) []string { return l[:9] }, []string{"truncated 10"}},
		"many removed":     {func(l []string) []string { return l[:2] }, []string{"truncated 10"}},
		"all removed":      {func([]string) []string { return nil }, []string{"truncated 10"}},
		"cut in a line":    {func(l []string) []string { l[9] = l[9][:30]; return l }, []string{"torn 0", "truncated 10"}},
		"a foreign line":   {func(l []string) []string { l[3] += "something\n"; return l }, []string{"foreign 5"}},
		"one told twice":   {func(l []string) []string { l[3] += l[3]; return l }, []string{"reordered 4"}},
		"an entry made up": {func(l []string) []string { return append(l, rehash(strings.Replace(l[9], `"seq":10`, `"seq":11`, 1))) }, []string{"reordered 11"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLog(t, 10)
			data, err := os.ReadFile(l.Path())
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
			lines[len(lines)-1] += "\n"
			if err := os.WriteFile(l.Path(), []byte(strings.Join(c.damage(lines), "")), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, found(t, l)); diff != "" {
				t.Error(diff)
			}
			// A cut is still found after the log has gone on.
			if strings.Contains(name, "removed") && !strings.Contains(name, "one") && !strings.Contains(name, "first") {
				fill(t, l, 3)
				if got := found(t, l); len(got) != 1 || !strings.HasPrefix(got[0], "truncated") {
					t.Errorf("after it has gone on: %q", got)
				}
			}
		})
	}
}

// rehash does what an attacker would who knows how the log is made.
func rehash(line string) string { return audit.Rehash(line) }

// A crash leaves any part of a line; the next entry says so, and nothing else
// is damaged.
func TestTornLine(t *testing.T) {
	t.Parallel()
	for cut := 0; ; cut += 7 {
		l := newLog(t, 2)
		headFile := filepath.Join(l.Dir, "head")
		head, err := os.ReadFile(headFile)
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(l.Path())
		if err != nil {
			t.Fatal(err)
		}
		fill(t, l, 1)
		after, err := os.ReadFile(l.Path())
		if err != nil {
			t.Fatal(err)
		}
		line := after[len(before):]
		if cut > len(line) {
			return
		}
		// As the line was torn, the head was not written either.
		if err := os.WriteFile(headFile, head, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(l.Path(), int64(len(before)+cut)); err != nil {
			t.Fatal(err)
		}
		fill(t, l, 2)
		report, err := l.Verify(t.Context())
		if err != nil || !report.Whole() {
			t.Fatalf("cut at %d: %+v, %v", cut, report, err)
		}
		if cut > 0 && cut < len(line)-1 && (len(report.Findings) != 1 || report.Findings[0].Kind != audit.TornLine) {
			t.Errorf("cut at %d: %+v", cut, report.Findings)
		}
		kept, err := os.ReadFile(l.Path())
		if err != nil || !bytes.Contains(kept, line[:cut]) {
			t.Errorf("cut at %d: the torn bytes are gone, %v", cut, err)
		}
	}
}

// Only the end of the line was lost.
func TestLineWithoutItsEnd(t *testing.T) {
	t.Parallel()
	l := newLog(t, 3)
	info, err := os.Stat(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(l.Path(), info.Size()-1); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 1)
	report, err := l.Verify(t.Context())
	if err != nil || len(report.Findings) != 0 || report.Entries != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	l := newLog(t, 0)
	var wait sync.WaitGroup
	for range 8 {
		other := &audit.Log{Dir: l.Dir}
		wait.Go(func() {
			for range 50 {
				if err := other.Append(t.Context(), &audit.Entry{Event: audit.EventRead, Action: strings.Repeat("x", 500)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	report, err := l.Verify(t.Context())
	if err != nil || report.Entries != 400 || len(report.Findings) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestHugeArguments(t *testing.T) {
	t.Parallel()
	l := newLog(t, 0)
	e := &audit.Entry{Event: audit.EventCall, Arguments: map[string]any{"a": strings.Repeat("x", 10<<20)}, Problem: strings.Repeat("y", 1<<20)}
	if err := l.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 1)
	info, err := os.Stat(l.Path())
	if err != nil || info.Size() > 64<<10 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	if got := found(t, l); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	if got := audit.Text("API_KEY=abc make by-value", redact.Secrets{Values: []string{"by-value"}}); got != "API_KEY=[redacted] make [redacted]" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("word ", 10000)
	if got := audit.Text(long, redact.Secrets{}); len(got) > 1000 || !strings.Contains(got, "50000 bytes, sha256 ") {
		t.Errorf("a long text: %q", got)
	}
}

func BenchmarkAppend(b *testing.B) {
	l := &audit.Log{Dir: b.TempDir()}
	for b.Loop() {
		if err := l.Append(b.Context(), &audit.Entry{Event: audit.EventCall, Action: "exec", Arguments: map[string]any{"command": "go test ./..."}}); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte("{\"hash\":\"\n"))
	f.Add([]byte("\n\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &audit.Log{Dir: t.TempDir()}
		if err := os.WriteFile(l.Path(), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), &audit.Entry{Event: audit.EventRead}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
