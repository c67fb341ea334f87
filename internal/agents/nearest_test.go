package agents_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
)

func TestNearest(t *testing.T) {
	names := []string{"fix-login", "tr", "docs", "worker-1", "worker-2"}
	for typed, want := range map[string]string{
		"fix-lgoin":   "fix-login", // swapped
		"fix-logn":    "fix-login",
		"fix":         "fix-login", // begun
		"fix-login-2": "fix-login",
		"t":           "tr",
		"dosc":        "docs",
		"work":        "", // two begin like this
		"worker-3":    "worker-1",
		"release":     "",
		"":            "",
	} {
		if got := agents.Nearest(typed, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}
