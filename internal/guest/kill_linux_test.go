package guest_test

import (
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// An answer says that everything has ended: anything measured or begun
// afterwards has nothing to do with the excess.
func TestKillAnswersWhenProcessesHaveEnded(t *testing.T) {
	b := newBox(t)
	const script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 4322 & done >/dev/null 2>&1"
	for round := range 5 {
		if got := b.sh(script + "; echo begun"); got != "begun" {
			t.Fatalf("round %d: %q", round, got)
		}
		ended, err := wire.Kill(limit(t), b.open(), 0)
		if err != nil || len(ended) == 0 {
			t.Fatalf("round %d: %v, %v", round, ended, err)
		}
		running, err := wire.Processes(limit(t), b.open())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range running {
			if strings.Contains(p.Command, "sleep") {
				t.Errorf("round %d: still running: %+v", round, p)
			}
		}
	}
}
