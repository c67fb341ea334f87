package redteam_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/redteam"
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

// Every class has attacks, and every attack says what it is about and names a
// defence that is there.
func TestAttacksAreWhole(t *testing.T) {
	names, classes := map[string]bool{}, map[redteam.Class]bool{}
	for _, a := range redteam.Attacks() {
		if a.Name == "" || a.Escape == "" || names[a.Name] {
			t.Errorf("attack %q lacks something, or is there twice", a.Name)
		}
		if _, err := os.Stat(filepath.Join("../..", a.Defence)); err != nil {
			t.Errorf("attack %q: %v", a.Name, err)
		}
		names[a.Name], classes[a.Class] = true, true
	}
	for _, class := range redteam.Classes() {
		if !classes[class] {
			t.Errorf("class %q has no attack", class)
		}
		delete(classes, class)
	}
	for class := range classes {
		t.Errorf("class %q has no text", class)
	}
}
