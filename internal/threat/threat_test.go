package threat_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

var update = flag.Bool("update", false, "rewrite the table in docs/security.md")

func TestPage(t *testing.T) {
	const page = "../../docs/security.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), threat.Begin)
	_, after, ended := strings.Cut(rest, threat.End)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	want := before + threat.Page() + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not what the table says; rewrite it with -update (-want +got):\n%s", page, diff)
	}
}

// Every attack says what it is about, names files that are there, and is tried
// by a suite or by a test that exists.
func TestTableIsWhole(t *testing.T) {
	suites := []string{threat.Redteam, threat.Attacks, threat.Network, threat.Posture}
	names, classes := map[string]bool{}, map[threat.Class]bool{}
	for _, a := range threat.All() {
		if a.Name == "" || a.Escape == "" || len(a.Defence) == 0 || len(a.Tried) == 0 || names[a.Name] {
			t.Errorf("attack %q lacks something, or is there twice", a.Name)
		}
		names[a.Name], classes[a.Class] = true, true
		for _, file := range a.Defence {
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
				t.Errorf("attack %q: %v", a.Name, err)
			}
		}
		for _, by := range a.Tried {
			dir, test, own := strings.Cut(by, ": ")
			if own && !hasTest(t, dir, test) || !own && !slices.Contains(suites, by) {
				t.Errorf("attack %q is tried by %q, which is not there", a.Name, by)
			}
		}
		if len(a.Places) > 0 && !slices.Contains(a.Tried, threat.Attacks) {
			t.Errorf("attack %q names places, and the suite that has them does not try it", a.Name)
		}
		if (len(a.Looks) > 0) != slices.Contains(a.Tried, threat.Posture) {
			t.Errorf("attack %q names the posture without what it shows in, or the reverse", a.Name)
		}
	}
	for _, text := range threat.Classes() {
		if text.About == "" || len(text.Links) == 0 || !classes[text.Class] {
			t.Errorf("class %q lacks a text, a reference or attacks", text.Class)
		}
		delete(classes, text.Class)
	}
	for class := range classes {
		t.Errorf("class %q has no text", class)
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	is := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return is.Match(text)
	})
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"git: core.fsmonitor": "git", "git: .git replaced": "git: .git replaced", "plant: a: b": "plant", "no such attack": "", "no such: attack": "",
	} {
		if got, ok := threat.Find(threat.Attacks, name); got.Name != want || ok != (want != "") {
			t.Errorf("%q is found as %q, %v; want %q", name, got.Name, ok, want)
		}
	}
	unknown, missing := threat.Uncovered(threat.Posture, []string{"find another interface", "new"})
	if !slices.Equal(unknown, []string{"new"}) || slices.Contains(missing, "find another interface") || len(missing) != len(threat.By(threat.Posture))-1 {
		t.Errorf("unknown %q, missing %q", unknown, missing)
	}
}
