package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// write writes the results of a run as a page of the documentation.
func (b *bench) write(path string, machine []fact, took time.Duration) error {
	return os.WriteFile(path, []byte(b.text(machine, took)), 0o644)
}

func (b *bench) text(machine []fact, took time.Duration) string {
	var page strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) }
	line("# How fast")
	line("")
	line("Written by `make benchmarks`, in one run of %s; edit `test/bench` instead. litterbox and what stands beside it were measured in turns, on the same machine; medians of %d runs, fewer where one takes seconds. Times of another machine differ, ratios less. `make bench` prints the same table without writing this page, `make bench BENCHFLAGS='-only agents'` one part of it.", took.Round(time.Second), b.rounds)
	line("")
	line("## The machine")
	line("")
	line("| | |")
	line("|---|---|")
	for _, f := range machine {
		line("| %s | %s |", f.what, cell(f.value))
	}
	line("")
	line("## What was measured")
	line("")
	line("| what | litterbox | beside | ratio | target | |")
	line("|---|---|---|---|---|---|")
	var short []string
	reached, judged := 0, 0
	for _, one := range b.report.Rows {
		text, verdict := "", ""
		if t, found := targetOf(one); found {
			judged++
			text, verdict = t.reach.String(), "met"
			if t.reach.met(one) {
				reached++
			} else {
				verdict = "short"
				short = append(short, fmt.Sprintf("- **%s**: %s%s, target %s: %s.", cell(one.name()), one.Here, paren(one), text, t.reason))
			}
		}
		line("| %s | %s | %s | %s | %s | %s |", cell(one.name()), one.Here, cell(one.beside()), one.times(), text, verdict)
	}
	line("")
	line("%d of %d targets are met.", reached, judged)
	line("")
	line("## What falls short, and why")
	line("")
	if len(short) == 0 {
		line("Nothing, on this machine.")
	}
	for _, one := range short {
		line("%s", one)
	}
	line("")
	line("## What was not measured")
	line("")
	missing := slices.Compact(slices.Clone(b.report.Missing))
	if len(missing) == 0 {
		line("Everything was there.")
	}
	for _, one := range missing {
		line("- %s", one)
	}
	return page.String()
}

func paren(one row) string {
	if one.times() == "" {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", one.times(), one.Beside)
}

// cell keeps a text within its cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
