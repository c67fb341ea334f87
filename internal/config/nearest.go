package config

import (
	"slices"
	"strings"
)

// nearest is the valid key or section that path may have meant; "" when none
// is near. A key at the wrong level is near to its own name elsewhere.
func nearest(path []string) string {
	const far = 1 << 10
	typed := dotted(path)
	last := path[len(path)-1]
	best, least := "", far
	consider := func(candidate string, distance, limit int) {
		if distance <= limit && distance < least {
			best, least = candidate, distance
		}
	}
	for _, candidate := range candidates() {
		consider(candidate, edits(typed, candidate), tolerance(candidate))
		if strings.Count(candidate, ".") != len(path)-1 || len(path) > 1 {
			// The own name only, one step less near than the same name in full.
			name := candidate[strings.LastIndexByte(candidate, '.')+1:]
			consider(candidate, edits(last, name)+1, tolerance(name)+1)
			if len(path) > 1 && path[0] == name && candidate != name { // a table of names, without its section
				consider(candidate, 1, 1)
			}
		}
	}
	return best
}

func candidates() []string {
	var names []string
	for _, key := range schema() {
		names = append(names, key.Name)
		if section, _, ok := strings.Cut(key.Name, "."); ok && !slices.Contains(names, section) {
			names = append(names, section)
		}
	}
	return names
}

// tolerance is how many typing errors a name of this length may hold.
func tolerance(name string) int { return max(1, len(name)/3) }

// edits counts the single-byte insertions, deletions, replacements and swaps
// of neighbours between two names (optimal string alignment).
func edits(a, b string) int {
	if len(a) > 100 { // no valid key is that long; a hostile key may be
		return len(a)
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
