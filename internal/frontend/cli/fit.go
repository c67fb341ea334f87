package cli

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/term"
)

// fit leaves columns of a table out, in the order in which they are given, until it
// is no wider than the terminal. Elsewhere it stays whole: programs that read it
// count columns.
func (c *console) fit(rows [][]string, expendable ...string) [][]string {
	out, ok := terminal(c.stdout)
	if !ok || len(rows) == 0 {
		return rows
	}
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil || width <= 0 {
		return rows
	}
	return narrowed(rows, width, expendable)
}

func narrowed(rows [][]string, width int, expendable []string) [][]string {
	for _, column := range expendable {
		if tableWidth(rows) <= width {
			break
		}
		at := slices.Index(rows[0], column)
		if at < 0 {
			continue
		}
		var less [][]string
		for _, row := range rows {
			less = append(less, slices.Delete(slices.Clone(row), at, at+1))
		}
		rows = less
	}
	return rows
}

// tableWidth is how wide table draws rows: two spaces between columns.
func tableWidth(rows [][]string) int {
	total := -2
	for i := range rows[0] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(clean(row[i])))
		}
		total += widest + 2
	}
	return total
}
