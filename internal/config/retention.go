package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readAge reads a duration; besides the units of Go it knows days and weeks.
func readAge(v value) (time.Duration, []problem) {
	scale, text := time.Duration(1), v.text
	if number, ok := strings.CutSuffix(text, "d"); ok {
		scale, text = 24, number+"h"
	} else if number, ok := strings.CutSuffix(text, "w"); ok {
		scale, text = 7*24, number+"h"
	}
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 || age > math.MaxInt64/scale {
		return 0, wrong(v, `max-age = "30d"`, "retention.max-age must be a duration such as \"30d\" or \"12h\", not %q", v.text)
	}
	return age * scale, nil
}

// readSize reads a number of bytes with a unit of powers of two.
func readSize(v value) (int64, []problem) {
	number := strings.TrimRight(v.text, "KMGTiB")
	exponent := strings.Index(" KMGT", strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(v.text, number), "B"), "i"))
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || exponent < 0 || n <= 0 || n > 1<<20 {
		return 0, wrong(v, `max-disk = "20GiB"`, "retention.max-disk must be a size such as \"20GiB\", not %q", v.text)
	}
	return int64(n * math.Pow(1024, float64(exponent))), nil
}

// readStates reads the states in which a sandbox may go.
func readStates(v value) ([]string, []problem) {
	possible := []string{"stopped", "failed", "orphaned"}
	var states []string
	var problems []problem
	for _, item := range v.items {
		if !slices.Contains(possible, item.text) {
			problems = append(problems, wrong(item, `states = ["stopped", "failed"]`, "retention.states: a sandbox that is %q is never cleared away", item.text)...)
			continue
		}
		states = append(states, item.text)
	}
	return union(nil, states), problems
}
