package mcp_test

import (
	"strings"
	"testing"
)

// The project of the task: a small real one, with a bug in it that its tests
// show. The last page is cut short if the number of items is not a multiple.
const (
	pagerGo = `// Package pager cuts lists into pages.
package pager

// Pages tells how many pages of size there are for n items.
func Pages(n, size int) int {
	if size <= 0 {
		return 0
	}
	return n / size
}

// Page returns the items of one page, counted from 0.
func Page(items []string, number, size int) []string {
	if number < 0 || number >= Pages(len(items), size) {
		return nil
	}
	from := number * size
	return items[from:min(from+size, len(items))]
}
`
	pagerTest = `package pager

import (
	"slices"
	"testing"
)

func TestPage(t *testing.T) {
	items := []string{"a", "b", "c", "d", "e"}
	for number, want := range [][]string{{"a", "b"}, {"c", "d"}, {"e"}, nil} {
		if got := Page(items, number, 2); !slices.Equal(got, want) {
			t.Errorf("page %d: %q, want %q", number, got, want)
		}
	}
}
`
)

// A scripted agent does a task from end to end by tools alone, and a human
// merges its work.
func TestTask(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Put(h.Repo+"/go.mod", "module example.com/pager\n\ngo 1.21\n")
	h.Put(h.Repo+"/pager/pager.go", pagerGo)
	h.Put(h.Repo+"/pager/pager_test.go", pagerTest)
	h.Git("add", ".")
	h.Git("commit", "-qm", "A pager")
	c := connect(t, h, sessions)
	c.must("sandbox-create", args{"name": "Last page is missing"})
	tests := func() (last answer) {
		// Without vet, which would be compiled first.
		last = c.must("sandbox-exec", args{"command": "go test -vet=off ./...", "message": "Run the tests", "timeout": 300})
		text := last.text
		for last.is("running") {
			last = c.must("sandbox-wait", args{"command": last.num("command")})
			text += last.text
		}
		last.text = text
		return last
	}
	result := tests()
	if result.num("exit_code") == 0 || !strings.Contains(result.text, `page 2: [], want ["e"]`) {
		t.Fatalf("the tests: %s", result.text)
	}
	// Where does it come from?
	found := c.must("sandbox-search", args{"pattern": `^func Page`, "glob": "*.go"})
	if !strings.Contains(found.text, "pager/pager.go:5: func Pages(n, size int) int {") {
		t.Fatalf("%s", found.text)
	}
	source := c.must("sandbox-read", args{"path": "pager/pager.go"})
	if source.text != pagerGo {
		t.Fatalf("%s", source.text)
	}
	c.must("sandbox-edit", args{"path": "pager/pager.go", "old": "return n / size", "new": "return (n + size - 1) / size", "message": "Count the last page too"})
	result = tests()
	if result.num("exit_code") != 0 || !strings.Contains(result.text, "ok") {
		t.Fatalf("the tests: %s", result.text)
	}
	if diff := c.must("sandbox-diff", args{}); diff.num("total") != 1 || !strings.Contains(diff.text, "+	return (n + size - 1) / size") {
		t.Errorf("%s", diff.text)
	}
	c.must("sandbox-milestone", args{"message": "Show the last page\n\nPages rounded down, so a page that is not full was lost."})
	if err := c.session.Close(); err != nil {
		t.Error(err)
	}

	if got := h.Must("diff", "last-page-is-missing", "--stat"); !strings.Contains(got, "pager/pager.go | 2 +-") {
		t.Errorf("%s", got)
	}
	if got := h.Litterbox("merge", "last-page-is-missing", "--yes"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := h.Git("log", "-1", "--format=%s%n%an", "main"); got != "Show the last page\nTest User" {
		t.Errorf("%q", got)
	}
	if got := h.Git("show", "main:pager/pager.go"); got+"\n" != strings.Replace(pagerGo, "return n / size", "return (n + size - 1) / size", 1) {
		t.Errorf("%s", got)
	}
	if got := h.Litterbox("audit", "verify"); got.Code != 0 {
		t.Errorf("%+v", got)
	}
}
