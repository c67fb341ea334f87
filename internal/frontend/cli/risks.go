package cli

import (
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// How many risks a question names: of each group, and of each reason in it.
// The rest are counted; --json names all.
const (
	mostReasons = 8
	mostPaths   = 4
)

// rankTitles head the groups of risks, by rank.
func rankTitle(rank int) string {
	switch rank {
	case 1:
		return "by themselves, when git is used or the directory is opened"
	case 2:
		return "at the next install, build, test or start"
	case 3:
		return "as instructions to agents"
	case 4:
		return "on other machines, or by what they choose to fetch"
	default:
		return "when they are called"
	}
}

// riskLines shows risks by rank, those of the same reason together.
func riskLines(risks []engine.Risk) []string {
	var lines []string
	for rank := 1; rank <= 5; rank++ {
		var reasons []string
		paths := map[string][]string{}
		for _, risk := range risks {
			if risk.Rank != rank && (rank != 5 || risk.Rank >= 1 && risk.Rank <= 5) {
				continue
			}
			if paths[risk.Reason] == nil {
				reasons = append(reasons, risk.Reason)
			}
			paths[risk.Reason] = append(paths[risk.Reason], risk.Path)
		}
		if len(reasons) == 0 {
			continue
		}
		lines = append(lines, " "+rankTitle(rank)+":")
		hidden := 0
		for i, reason := range reasons {
			if i >= mostReasons {
				hidden += len(paths[reason])
				continue
			}
			named := paths[reason]
			for _, path := range named[:min(mostPaths, len(named))] {
				lines = append(lines, fmt.Sprintf("  %s  (%s)", clean(path), clean(reason)))
			}
			if more := len(named) - mostPaths; more > 0 {
				lines = append(lines, fmt.Sprintf("  and %d more  (%s)", more, clean(reason)))
			}
		}
		if hidden > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more", hidden))
		}
	}
	return lines
}
