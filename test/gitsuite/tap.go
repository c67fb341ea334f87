// Package gitsuite reads the output of the scripts of git's own test suite.
// Its tests run these scripts inside a sandbox and outside, and compare; start
// reading at suite_linux_test.go.
package gitsuite

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// State is how one test of a script ended.
type State string

// States of a test. A known breakage is one that git's authors expect to fail.
const (
	Passed   State = "ok"
	Failed   State = "not ok"
	Skipped  State = "skipped"
	Breakage State = "known breakage"
	Fixed    State = "breakage vanished"
	Absent   State = "not run"
)

// Outcome is the outcome of a script.
type Outcome struct {
	Tests map[int]State
	Names map[int]string
	// Plan is the number of tests that the script says it has; -1 if it ended
	// before it said so.
	Plan int
	// Whole is the reason why a script skips all of its tests.
	Whole string
}

var (
	line = regexp.MustCompile(`^(not )?ok ([0-9]+)(?: - (.*?))?(?: *# *(skip|TODO|SKIP)\b(.*))?$`)
	plan = regexp.MustCompile(`^1\.\.([0-9]+)(?: *# *SKIP *(.*))?$`)
)

// Read parses the output of a script: the Test Anything Protocol, as
// t/test-lib.sh of git writes it. Other lines are the script's own.
func Read(output string) Outcome {
	outcome := Outcome{Tests: map[int]State{}, Names: map[int]string{}, Plan: -1}
	for text := range strings.Lines(output) {
		text = strings.TrimSuffix(text, "\n")
		if found := plan.FindStringSubmatch(text); found != nil {
			outcome.Plan, _ = strconv.Atoi(found[1])
			outcome.Whole = found[2]
			continue
		}
		found := line.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		number, err := strconv.Atoi(found[2])
		if err != nil {
			continue
		}
		state := Passed
		switch failed := found[1] != ""; {
		case strings.EqualFold(found[4], "skip"):
			// There the name follows the directive.
			state = Skipped
		case found[4] == "TODO" && failed:
			state = Breakage
		case found[4] == "TODO":
			state = Fixed
		case failed:
			state = Failed
		}
		outcome.Tests[number] = state
		outcome.Names[number] = strings.TrimSpace(found[3] + found[5])
	}
	return outcome
}

// Difference is one test that ended differently inside.
type Difference struct {
	Number          int // 0 is the script as a whole
	Name            string
	Outside, Inside State
}

func (d Difference) String() string {
	return fmt.Sprintf("%d (%s): outside %s, inside %s", d.Number, d.Name, d.Outside, d.Inside)
}

// Compare names every test that did not end alike, by number. Tests have the
// same numbers on both sides because a script that skips one still counts it.
func Compare(outside, inside Outcome) []Difference {
	var differences []Difference
	if outside.Plan != inside.Plan || outside.Whole != inside.Whole {
		differences = append(differences, Difference{
			Name: "the script as a whole", Outside: outside.whole(), Inside: inside.whole(),
		})
	}
	numbers := map[int]bool{}
	for number := range outside.Tests {
		numbers[number] = true
	}
	for number := range inside.Tests {
		numbers[number] = true
	}
	for number := range numbers {
		difference := Difference{Number: number, Name: outside.Names[number], Outside: outside.state(number), Inside: inside.state(number)}
		if difference.Name == "" {
			difference.Name = inside.Names[number]
		}
		if difference.Outside != difference.Inside {
			differences = append(differences, difference)
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int { return a.Number - b.Number })
	return differences
}

func (o Outcome) state(number int) State {
	if state, ok := o.Tests[number]; ok {
		return state
	}
	return Absent
}

func (o Outcome) whole() State {
	switch {
	case o.Plan < 0:
		return "ended early"
	case o.Whole != "":
		return State("all skipped: " + o.Whole)
	default:
		return State(fmt.Sprintf("%d tests", o.Plan))
	}
}
