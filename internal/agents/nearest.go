package agents

// nearest is the name that a typed one may have meant; "" when none is near.
func nearest(typed string, names []string) string {
	best, least := "", max(1, len(typed)/2)+1
	for _, name := range names {
		if d := distance(typed, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete or replace between two names.
func distance(a, b string) int {
	if len(a) > 50 { // no name is that long
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
