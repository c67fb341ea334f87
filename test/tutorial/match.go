package tutorial

import (
	"regexp"
	"strings"
)

// elision is a line that matches any lines.
const elision = "…"

// matches reports whether an output matches what a page shows.
func matches(shown, came string) bool {
	return match(lines(shown), lines(came))
}

func match(shown, came []string) bool {
	for len(shown) > 0 {
		if shown[0] == elision {
			for skip := range len(came) + 1 {
				if match(shown[1:], came[skip:]) {
					return true
				}
			}
			return false
		}
		if len(came) == 0 || shown[0] != came[0] {
			return false
		}
		shown, came = shown[1:], came[1:]
	}
	return len(came) == 0
}

// differing is what differs each time, and its replacement in a comparison.
var differing = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`), ""},
	// A quick look at the checkout may end before it knows.
	{regexp.MustCompile(`(?m)^note: uncommitted changes, if there are any, stay out of the sandbox\n`), ""},
	{regexp.MustCompile(`-[0-9]{8}-[0-9]{6}\.[0-9]{9}\b`), "-TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{7,64}\b`), "COMMIT"},
	{regexp.MustCompile(`\b[0-9]+(\.[0-9]+)? ?(ms|s|m)\b( ago)?`), "DURATION"},
	{regexp.MustCompile(`\bjust now\b`), "DURATION"},
	{regexp.MustCompile(`\(cached\)`), "DURATION"}, // instead of a test's time
	{regexp.MustCompile(`\b(127\.0\.0\.1|localhost):[0-9]+`), "ADDRESS"},
	{regexp.MustCompile(`\bv?[0-9]+\.[0-9]+\.[0-9]+\b`), "VERSION"},
	{regexp.MustCompile(`\b[0-9]{1,2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}\b`), "DATE"},
	{regexp.MustCompile(`\b[0-9]+(\.[0-9]+)? (kB|MB|KiB|MiB)`), "SIZE"},
	{regexp.MustCompile(`\b[0-9]{3,7}\b`), "NUMBER"}, // of processes and ports
	{regexp.MustCompile(`(?m)(^|[ "])(/[\w.+-]+)+/`), "${1}DIRECTORY/"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// lines returns those of an output, without what differs each time and without
// trailing spaces.
func lines(output string) []string {
	for _, d := range differing {
		output = d.what.ReplaceAllString(output, d.as)
	}
	var all []string
	for line := range strings.Lines(output) {
		all = append(all, strings.TrimRight(line, " \n"))
	}
	return all
}
