package engine

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// A mistyped action names the one that was meant, also in the hint.
func TestNoWish(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string][2]string{
		"strat":  {`cannot "strat" a service; did you mean "start"?`, "litterbox service box start"},
		"log":    {`cannot "log" a service; did you mean "logs"?`, "litterbox service box logs"},
		"reload": {`cannot "reload" a service: its actions are logs, start, stop, restart, status`, "litterbox service box status"},
	} {
		err := noWish("box", typed)
		if got := [2]string{err.Error(), fault.HintOf(err)}; got != want || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
}
