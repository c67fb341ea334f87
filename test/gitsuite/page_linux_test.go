package gitsuite_test

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference/git-suite.md")

const page = "../../docs/reference/git-suite.md"

const pageHead = "# git's own test-suite\n" + `
<!-- Generated from test/gitsuite (go test ./test/gitsuite -run Page -update). -->

git inside a sandbox is the same program as outside, and has to do the same. git's test-suite asks that with tens of thousands of small tests. Its source comes from Debian's source package of the very git that is installed; that git is what is tested. Each script runs twice by the same user id on copies of the same files: outside, and inside a sandbox with its network closed. Then each single test must have ended alike: passed, failed, skipped, or failed as git's authors expect.

- ` + "`make test-git`" + ` runs all of it, which takes hours on two cores. It needs Debian, with dpkg-dev, gcc, make, perl and zlib1g-dev; what is fetched and built stays in ` + "`bin/git-suite`" + `. ` + "`make test-git LITTERBOX_GIT_SUITE='t00* t7508-*'`" + ` runs what these patterns match, ` + "`LITTERBOX_GIT_SUITE=subset`" + ` the scripts below.
- What this machine lacks (a web server, Subversion, CVS) is skipped on both sides alike, and so are the tests that only root can run: inside nobody is root.

## What ends differently inside

A test that ends in another way inside fails the run, except these of git 2.39. They were found by the subset and by the scripts that speak of shared repositories; the others have not all been run, and may add lines.

| script | tests | inside | why |
|---|---|---|---|
`

const pageMiddle = `
## The subset

What a sandbox could get wrong first: the index, status, checkout, work trees, renaming, symbolic links, permissions, the untracked cache and the file system monitor.

`

// The page says what the tables say.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, k := range known {
		var numbers []string
		for _, n := range k.numbers {
			numbers = append(numbers, strconv.Itoa(n))
		}
		b.WriteString("| " + k.script + " | " + strings.Join(numbers, ", ") + " | " + string(k.inside) + " | " + k.reason + " |\n")
	}
	b.WriteString(pageMiddle)
	if !slices.IsSorted(subset) {
		t.Error("the subset is not sorted")
	}
	b.WriteString("`" + strings.Join(subset, "`, `") + "`\n")
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("%s is not what the tables say (go test ./test/gitsuite -run Page -update):\n%s", page, diff)
	}
}
