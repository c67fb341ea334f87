package watch

import (
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/keeper"
)

// FuzzWatchedLines cuts the output of commands anywhere: the lines that a watcher
// sees are the same, bounded, and without the secret.
func FuzzWatchedLines(f *testing.F) {
	f.Add("a\nb\r\n\nc", 1)
	f.Add("gr\xc3\xbcn exactly-this-secret\nTOKEN=abc", 5)
	f.Add("-----BEGIN X PRIVATE KEY-----\nMIIE\n-----END X PRIVATE KEY-----\nafter\n", 7)
	f.Add(strings.Repeat("x", lineKept+9)+"\nz", 100)
	f.Add(strings.Repeat("x", lineShown-9)+"exactly-this-secret\n", 4000)
	f.Fuzz(func(t *testing.T, text string, step int) {
		step = 1 + (step&0x7fffffff)%5000
		var cut []keeper.Echo
		for rest, mid := text, false; rest != ""; {
			n := min(step, len(rest))
			piece := out(1, rest[:n])
			piece.Mid = mid
			cut, mid, rest = append(cut, piece), rest[n-1] != '\n', rest[n:]
		}
		end := keeper.Echo{At: 2, Cycle: 1, End: true}
		want := seen(out(1, text), end)
		if got := seen(append(cut, end)...); !slices.Equal(got, want) {
			t.Errorf("in steps of %d: %q, want %q", step, got, want)
		}
		if n := strings.Count(text, "\n"); len(want) > n+1 {
			t.Errorf("%d lines of %d", len(want), n)
		}
		for _, line := range want {
			if len(line) > lineShown+100 || strings.Contains(line, "exactly-this-secret") {
				t.Errorf("a line %q", line)
			}
		}
	})
}
