package guest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counted is a context that is over after a number of looks at it.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A search can also end inside a line, with any pattern.
func TestSearchEndsInsideALine(t *testing.T) {
	re, cost, err := compile("(?m)" + strings.Repeat("(x?y?){50}", 40) + "z")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("xy", searchBy/2-1)
	if cost*len(line) <= swiftly {
		t.Fatalf("the pattern costs only %d", cost)
	}
	w := &walk{ctx: &counted{context.Background(), 100}, limit: 10, out: bufio.NewWriter(&bytes.Buffer{})}
	s := &searcher{walk: w, re: re, cost: cost, lines: bufio.NewReaderSize(nil, searchBy)}
	if err := s.file(strings.NewReader(line), "long"); !errors.Is(err, errStop) || w.found.Stopped != "time" {
		t.Errorf("%v, stopped by %q", err, w.found.Stopped)
	}
}

// The careful way finds what the quick one does.
func TestWatchedMatch(t *testing.T) {
	for _, pattern := range []string{"a", "^b", "c$", "(?i)Ö", "(a|ab)(c|bcd)", "\\bx\\b", "", "\xff"} {
		re, _, err := compile("(?m)" + pattern)
		if err != nil {
			continue // not UTF-8
		}
		for _, line := range []string{"", "abc", "xx x ö", "abcd", "\xffa\xff", "bca"} {
			w := &walk{ctx: context.Background()}
			quick := (&searcher{walk: w, re: re}).match([]byte(line))
			careful := (&searcher{walk: w, re: re, cost: swiftly + 1}).match([]byte(line))
			if diff := cmp.Diff(quick, careful); diff != "" {
				t.Errorf("%q in %q: %s", pattern, line, diff)
			}
		}
	}
}

func TestPatternsAreBounded(t *testing.T) {
	for pattern, want := range map[string]bool{
		"func .*": true, "[a-z]{1,100}": true, "(foo|bar){3}": true, strings.Repeat("(.{1000})", 400): false, strings.Repeat("((a{10}){10}){10}", 100): false,
	} {
		if _, _, err := compile(pattern); (err == nil) != want {
			t.Errorf("%.40q: %v", pattern, err)
		}
	}
}
