package cli

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// Files that run first come first, the same reason together, and the rest
// counted.
func TestRiskLines(t *testing.T) {
	risks := []engine.Risk{{Path: "run", Reason: "a new executable", Rank: 5}, {Path: ".envrc", Reason: "run by direnv", Rank: 1}}
	for n := range 6 {
		risks = append(risks, engine.Risk{Path: fmt.Sprint("p", n), Reason: "run by make", Rank: 2})
	}
	for n := range 10 {
		risks = append(risks, engine.Risk{Path: fmt.Sprint("ci", n), Reason: fmt.Sprint("reason ", n), Rank: 4})
	}
	want := []string{
		" by themselves, when git is used or the directory is opened:", "  .envrc  (run by direnv)",
		" at the next install, build, test or start:",
		"  p0  (run by make)", "  p1  (run by make)", "  p2  (run by make)", "  p3  (run by make)", "  and 2 more  (run by make)",
		" on other machines, or by what they choose to fetch:",
		"  ci0  (reason 0)", "  ci1  (reason 1)", "  ci2  (reason 2)", "  ci3  (reason 3)",
		"  ci4  (reason 4)", "  ci5  (reason 5)", "  ci6  (reason 6)", "  ci7  (reason 7)", "  and 2 more",
		" when they are called:", "  run  (a new executable)",
	}
	if diff := cmp.Diff(want, riskLines(risks)); diff != "" {
		t.Error(diff)
	}
}
