package audit_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
)

func TestReader(t *testing.T) {
	t.Parallel()
	l := newLog(t, 0)
	r, err := l.Reader(100)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	next := func(r *audit.Reader) (names []string) {
		t.Helper()
		entries, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Action)
		}
		return names
	}
	want := func(got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	want(next(r)) // there is no log yet
	fill(t, l, 2)
	want(next(r), "action-0", "action-1")
	want(next(r))
	fill(t, l, 1)
	want(next(r), "action-0")

	// A late reader begins with a whole line.
	data, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for tail, names := range map[int][]string{
		-1: {"action-0", "action-1", "action-0"}, 0: nil, 1: nil, len(lines[2]) - 1: nil, len(lines[2]): {"action-0"},
		len(lines[2]) + 5: {"action-0"}, len(lines[2]) + len(lines[1]): {"action-1", "action-0"}, len(data): {"action-0", "action-1", "action-0"}, 1 << 20: {"action-0", "action-1", "action-0"},
	} {
		late, err := l.Reader(int64(tail))
		if err != nil {
			t.Fatal(err)
		}
		want(next(late), names...)
		late.Close()
	}

	// A line that is still being written is read once it is whole.
	file, err := os.OpenFile(l.Path(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, part := range []string{lines[0][:20], lines[0][20:]} {
		want(next(r))
		if _, err := file.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	want(next(r), "action-0")

	// After a cut, it goes on after the rest.
	if err := os.Truncate(l.Path(), int64(len(lines[0]))); err != nil {
		t.Fatal(err)
	}
	want(next(r))
	if _, err := file.WriteString(lines[1]); err != nil {
		t.Fatal(err)
	}
	want(next(r), "action-1")
}
