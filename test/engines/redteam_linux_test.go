package engines_test

import (
	"encoding/json"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/engine"
)

// What users try on their machine they can try on their engine, too: nothing is open,
// and nothing stays. The image has no git, so attacks with it show nothing here.
func TestRedteam(t *testing.T) {
	whole(t)
	e := docker(t, nil)
	h := e.host(engine.Shell)
	for class, atLeast := range map[string]int{"files": 1, "network": 1, "kernel": 5, "pid1": 3, "secrets": 2, "resources": 1, "terminal": 0} {
		got := h.Litterbox("redteam", "--driver", "docker", "--base-image", engine.Shell, "--only", class, "--json")
		var report struct {
			Driver, Isolation string
			Closed, Open      int
		}
		if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil || got.Code != 0 {
			t.Errorf("%s: %v: %+v", class, err, got)
			continue
		}
		if report.Driver != "docker" || report.Isolation != "full" || report.Closed < atLeast || report.Open > 0 {
			t.Errorf("%s: %s", class, got.Stdout)
		}
		t.Logf("%s: closed %d", class, report.Closed)
	}
	if found := e.Must("ps", "--all", "--quiet") + e.Must("volume", "ls", "--quiet"); found != "" {
		t.Errorf("it leaves %q", found)
	}
}
