package redteam_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/redteam"
	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

var update = flag.Bool("update", false, "rewrite docs/reference/redteam.md")

func TestPage(t *testing.T) {
	const page = "../../docs/reference/redteam.md"
	if *update {
		if err := os.WriteFile(page, []byte(redteam.Page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), redteam.Page()); diff != "" {
		t.Errorf("%s is not what the table says; rewrite it with -update (-want +got):\n%s", page, diff)
	}
}

// Every attack has a row in the table, and every row to be tried here is tried.
func TestAttacksAreWhole(t *testing.T) {
	var names []string
	seen := map[string]bool{}
	for _, a := range redteam.Attacks() {
		if seen[a.Title()] {
			t.Errorf("attack %q is listed twice", a.Title())
		}
		seen[a.Title()] = true
		names = append(names, a.Title())
	}
	if unknown, missing := threat.Uncovered(threat.Redteam, names); len(unknown)+len(missing) > 0 {
		t.Errorf("without a row in package threat: %q; rows that nothing here tries: %q", unknown, missing)
	}
}
