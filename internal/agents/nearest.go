package agents

import "strings"

// Nearest is the name that a typed one may have meant: the one with the fewest
// typing errors between them, else the only one that begins as typed does. It is
// "" when none is near.
func Nearest(typed string, names []string) string {
	best, least := "", max(1, len(typed)/3)+1
	for _, name := range names {
		if d := edits(typed, name); d < least {
			best, least = name, d
		}
	}
	if best != "" {
		return best
	}
	for _, name := range names {
		if !begins(typed, name) {
			continue
		}
		if best != "" && best != name {
			return ""
		}
		best = name
	}
	return best
}

// begins reports whether one of two names begins with the other.
func begins(typed, name string) bool {
	return len(typed) > 2 && len(name) > 2 && (strings.HasPrefix(name, typed) || strings.HasPrefix(typed, name))
}

// edits counts the bytes to insert, delete, replace or swap with their neighbour
// between two names (optimal string alignment).
func edits(a, b string) int {
	if len(a) > 100 || len(b) > 100 { // no name is that long
		return max(len(a), len(b))
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
