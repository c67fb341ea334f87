package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A page says which targets are met, and why not, where one is not.
func TestPage(t *testing.T) {
	b := &bench{report: &report{}}
	b.rounds = 15
	b.timed(whatCreate, "100 files", timing{median: 28 * time.Millisecond, best: 20 * time.Millisecond}, "bwrap", once(4*time.Millisecond))
	b.timed(whatExec, "100 files", once(3*time.Millisecond), "bwrap", once(4*time.Millisecond))
	b.alone("calls per second", "", 700, plain)
	b.report.missing("docker: it is not installed")
	reason := ""
	for _, one := range targets() {
		if one.what == whatCreate && one.beside == "bwrap" {
			reason = one.reason
		}
	}
	want := `# How fast

Written by ` + "`make benchmarks`" + `, in one run of 1m0s; edit ` + "`test/bench`" + ` instead. litterbox and what stands beside it were measured in turns, on the same machine; medians of 15 runs, fewer where one takes seconds. Times of another machine differ, ratios less. ` + "`make bench`" + ` prints the same table without writing this page, ` + "`make bench BENCHFLAGS='-only agents'`" + ` one part of it.

## The machine

| | |
|---|---|
| kernel | 6.18 |

## What was measured

| what | litterbox | beside | ratio | target | |
|---|---|---|---|---|---|
| create, first command and its commit, 100 files | 28.0 ms (best 20.0 ms) | bwrap 4.0 ms | 7.00 × | ≤ 5 × bwrap | short |
| exec without commit, 100 files | 3.0 ms | bwrap 4.0 ms | 0.75 × | ≤ 4 ms | met |
| calls per second | 700 | – |  |  |  |

1 of 2 targets are met.

## What falls short, and why

- **create, first command and its commit, 100 files**: 28.0 ms (best 20.0 ms) (7.00 × bwrap), target ≤ 5 × bwrap: ` + reason + `.

## What was not measured

- docker: it is not installed
`
	got := b.text([]fact{{"kernel", "6.18"}}, time.Minute)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the page differs (-want +got):\n%s", diff)
	}
}

// Every target has a readable limit, and a reason for when it is missed; none
// comes after one that takes its rows.
func TestTargets(t *testing.T) {
	for _, one := range targets() {
		if text := one.reach.String(); strings.Contains(text, "%!") || text == "" {
			t.Errorf("the target of %q reads %q", one.what, text)
		}
		if one.reason == "" {
			t.Errorf("the target of %q gives no reason for when it is missed", one.what)
		}
		sample := row{What: strings.Replace(one.what, "*", "something", 1), Beside: one.beside}
		if found, _ := targetOf(sample); found.what != one.what || found.beside != one.beside {
			t.Errorf("a row of the target %q beside %q is judged by that of %q", one.what, one.beside, found.what)
		}
	}
}
