package gitsuite_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/test/gitsuite"
)

func TestRead(t *testing.T) {
	got := gitsuite.Read(`Initialized empty Git repository
ok 1 - setup
not ok 2 - does # not work
#	true
ok 3 # skip needs a daemon (missing DAEMON)
not ok 4 - is known # TODO known breakage
ok 5 - was known # TODO known breakage vanished
ok
# passed all 5 test(s)
1..5
`)
	want := gitsuite.Outcome{
		Tests: map[int]gitsuite.State{
			1: gitsuite.Passed, 2: gitsuite.Failed, 3: gitsuite.Skipped, 4: gitsuite.Breakage, 5: gitsuite.Fixed,
		},
		Names: map[int]string{
			1: "setup", 2: "does # not work", 3: "needs a daemon (missing DAEMON)", 4: "is known known breakage", 5: "was known known breakage vanished",
		},
		Plan: 5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := gitsuite.Read("1..0 # SKIP no web server found\n"); got.Plan != 0 || got.Whole != "no web server found" {
		t.Errorf("a script that skips everything is read as %+v", got)
	}
	if got := gitsuite.Read("ok 1 - setup\n"); got.Plan != -1 {
		t.Errorf("a script that ended early is read as %+v", got)
	}
}

func TestCompare(t *testing.T) {
	outside := gitsuite.Read("ok 1 - a\nok 2 - b\nok 3 - c\nnot ok 4 - d # TODO known breakage\n1..4\n")
	for _, c := range []struct {
		inside string
		want   []string
	}{
		{"ok 1 - a\nok 2 - b\nok 3 - c\nnot ok 4 - d # TODO known breakage\n1..4\n", nil},
		{"ok 1 - a\nnot ok 2 - b\nok 3 # skip c (missing X)\nnot ok 4 - d\n1..4\n", []string{
			"2 (b): outside ok, inside not ok", "3 (c): outside ok, inside skipped", "4 (d known breakage): outside known breakage, inside not ok",
		}},
		{"ok 1 - a\nok 2 - b\n", []string{
			"0 (the script as a whole): outside 4 tests, inside ended early",
			"3 (c): outside ok, inside not run", "4 (d known breakage): outside known breakage, inside not run",
		}},
		{"1..0 # SKIP no\n", []string{
			"0 (the script as a whole): outside 4 tests, inside all skipped: no",
			"1 (a): outside ok, inside not run", "2 (b): outside ok, inside not run",
			"3 (c): outside ok, inside not run", "4 (d known breakage): outside known breakage, inside not run",
		}},
	} {
		var got []string
		for _, difference := range gitsuite.Compare(outside, gitsuite.Read(c.inside)) {
			got = append(got, difference.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q:\n%s", c.inside, diff)
		}
	}
}
