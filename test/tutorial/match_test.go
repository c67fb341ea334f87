package tutorial

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shown, came string
		want        bool
	}{
		{"created a at 14da25d\n", "created a at 0e2b9ff\n", true},
		{"created a at 14da25d\n", "created b at 14da25d\n", false},
		{"ok  \texample.com/greet\t0.003s\n", "ok  \texample.com/greet\t1.25s\n", true},
		{"one\n…\nfour\n", "one\ntwo\nthree\nfour\n", true},
		{"one\n…\nfour\n", "one\nfour\n", true},
		{"one\n…\n", "one\n", true},
		{"one\n…\nfour\n", "one\ntwo\n", false},
		{"one\n", "one\ntwo\n", false},
		{"one\ntwo\n", "one\n", false},
		{"", "", true},
		{"", "note: something\n", false},
	} {
		if got := matches(c.shown, c.came); got != c.want {
			t.Errorf("%q beside %q: %v", c.shown, c.came, got)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const text = "# Title\n\n```go a.go\npackage a\n```\n\nThen:\n\n```\n$ one two\nsaid\nmore\n$ three\n```\n\n```\nno session\n```\n"
	p, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, p.String()); diff != "" {
		t.Error(diff)
	}
	if f := p.parts[2].file; f == nil || f.path != "a.go" || f.content != "package a\n" {
		t.Errorf("the file is %+v", f)
	}
	want := []step{{"one two", "said\nmore\n"}, {"three", ""}}
	if diff := cmp.Diff(want, p.parts[6].session, cmp.AllowUnexported(step{})); diff != "" {
		t.Error(diff)
	}
	if _, err := parse("```\n$ one\n"); err == nil {
		t.Error("a block without an end is taken")
	}
}
