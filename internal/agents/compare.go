package agents

import "strings"

// compare gives the lines added (+) and removed (-) between two contents. A change
// consists of a few insertions, so it looks ahead only a little on the old side;
// its result is always right, if not always shortest.
func compare(before, after []byte) []string {
	old, fresh := lines(before), lines(after)
	shown := []string{}
	const ahead = 3
	for i, j := 0, 0; i < len(old) || j < len(fresh); {
		if i < len(old) && j < len(fresh) && old[i] == fresh[j] {
			i, j = i+1, j+1
			continue
		}
		skip, take := meet(old[i:], fresh[j:], ahead)
		for _, line := range old[i : i+skip] {
			shown = append(shown, "-"+line)
		}
		for _, line := range fresh[j : j+take] {
			shown = append(shown, "+"+line)
		}
		i, j = i+skip, j+take
	}
	return shown
}

// meet finds where two sequences of lines agree again: after how many of each.
func meet(old, fresh []string, ahead int) (skip, take int) {
	for sum := 1; sum < 200; sum++ {
		for skip := 0; skip <= min(sum, max(ahead, sum/2), len(old)); skip++ {
			take := sum - skip
			if take > len(fresh) {
				continue
			}
			if skip == len(old) && take == len(fresh) || skip < len(old) && take < len(fresh) && old[skip] == fresh[take] {
				return skip, take
			}
		}
	}
	return len(old), len(fresh)
}

func lines(content []byte) []string {
	if len(content) == 0 {
		return nil
	}
	all := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	for i, line := range all {
		all[i] = strings.TrimSuffix(line, "\r")
	}
	return all
}
