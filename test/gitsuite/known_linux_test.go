package gitsuite_test

import (
	"slices"

	"github.com/litterbox-sandbox/litterbox/test/gitsuite"
)

// subset are the scripts that show most of what a sandbox could get wrong, in
// minutes.
var subset = []string{
	"t0001-*", "t0002-*", "t0008-*", "t0020-*", "t0025-*", "t0028-*", "t0030-*", "t0050-*", "t0055-*", "t0061-*", "t0070-*",
	"t1011-*", "t1301-*", "t1304-*", "t1305-*", "t1500-*", "t1600-*", "t1700-*",
	"t2000-*", "t2004-*", "t2005-*", "t2007-*", "t2010-*", "t2018-*", "t2021-*", "t2023-*", "t2030-*", "t2100-*", "t2103-*", "t2107-*", "t2200-*", "t2202-*",
	"t2400-*", "t2402-*", "t2403-*", "t2404-*", "t2405-*", "t2406-*",
	"t3000-*", "t3001-*", "t3004-*", "t3010-*", "t3600-*", "t3700-*", "t3705-*", "t4008-*", "t4011-*",
	"t7001-*", "t7012-*", "t7063-*", "t7102-*", "t7300-*", "t7508-*", "t7511-*", "t7515-*", "t7519-*",
}

// quick are the scripts that run wherever git's source is at hand, in CI too:
// none looks at a clock, waits for another process or takes long. Each has run
// many times on a busy machine without ending differently.
var quick = []string{
	"t0050-*", "t1011-*", "t1304-*", "t1305-*",
	"t2004-*", "t2007-*", "t2018-*", "t2021-*", "t2023-*", "t2030-*", "t2100-*", "t2103-*", "t2107-*", "t2200-*", "t2202-*",
	"t2402-*", "t2403-*", "t2404-*", "t2405-*", "t2406-*",
	"t3000-*", "t3004-*", "t3010-*", "t3705-*", "t4008-*", "t4011-*", "t7012-*", "t7300-*", "t7515-*",
}

// layered are those of the quick scripts that run above many layers too: they
// rename, remove and link most.
var layered = []string{"t1011-*", "t2004-*", "t2405-*", "t3010-*", "t4008-*", "t7300-*"}

// difference is tests of a script that end differently inside.
type difference struct {
	script  string
	numbers []int
	inside  gitsuite.State
	reason  string
}

// known are the differences, each with its reason. The numbers are those of
// git 2.39.
var known []difference

// explain returns the reason for a difference, empty if there is none.
func explain(script string, d gitsuite.Difference) string {
	for _, k := range known {
		if k.script == script && slices.Contains(k.numbers, d.Number) && k.inside == d.Inside {
			return k.reason
		}
	}
	return ""
}

// vanished returns the tests of a script that should differ, but did not.
func vanished(script string, differences []gitsuite.Difference) []int {
	var numbers []int
	for _, k := range known {
		for _, number := range k.numbers {
			if k.script == script && !slices.ContainsFunc(differences, func(d gitsuite.Difference) bool { return d.Number == number }) {
				numbers = append(numbers, number)
			}
		}
	}
	return numbers
}
