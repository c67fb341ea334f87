package gitsuite_test

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var update = flag.Bool("update", false, "write docs/reference/git-suite.md")

const page = "../../docs/reference/git-suite.md"

const pageHead = "# git's own test-suite\n" + `
<!-- Generated from test/gitsuite (go test ./test/gitsuite -run Page -update). -->

git inside a sandbox is the same program as outside, and has to do the same. git's test-suite asks that with tens of thousands of small tests. Its source comes from Debian's source package of the very git that is installed; that git is what is tested. Each script runs twice by the same user id on copies of the same files: outside, and inside a sandbox with its network closed. Then each single test must have ended alike: passed, failed, skipped, or failed as git's authors expect. The same holds in a sandbox that stands on thirteen [frozen layers](snapshots.md#what-it-costs), and in one whose layers were joined.

- ` + "`make test-git`" + ` runs all of it, which takes most of an hour on two cores that do nothing else. It needs Debian, with dpkg-dev, gcc, make, perl and zlib1g-dev; what is fetched and built stays in ` + "`bin/git-suite`" + `. ` + "`make test-git LITTERBOX_GIT_SUITE='t00* t7508-*'`" + ` runs what these patterns match, ` + "`LITTERBOX_GIT_SUITE=subset`" + ` the scripts below, ` + "`LITTERBOX_GIT_SUITE=quick`" + ` the first of the two lists.
- CI runs the quick scripts on every change, as root and as an ordinary user; some of them also above layers.
- What this machine lacks (a web server, Subversion, CVS) is skipped on both sides alike, and so are the tests that only root can run: inside, no user is root.

## What ends differently inside

A test that ends in another way inside fails the run, except these of git 2.39. All of that version's suite has been run by root: 986 scripts with 26,293 tests.

`

const pageTable = `| script | tests | inside | why |
|---|---|---|---|
`

const pageQuick = `
## The quick scripts

None of them looks at a clock or waits for another process, and all take about a minute together.

`

const pageLayered = `
## The quick scripts above layers

They rename, remove and link most. Any other choice of scripts runs above layers as a whole.

`

const pageSubset = `
## The subset

What a sandbox could get wrong first: the index, status, checkout, work trees, renaming, symbolic links, permissions, the untracked cache and the file system monitor.

`

// The page says what the tables say.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(pageHead)
	if len(known) == 0 {
		b.WriteString("None is known.\n")
	} else {
		b.WriteString(pageTable)
	}
	for _, k := range known {
		var numbers []string
		for _, n := range k.numbers {
			numbers = append(numbers, strconv.Itoa(n))
		}
		b.WriteString("| " + k.script + " | " + strings.Join(numbers, ", ") + " | " + string(k.inside) + " | " + k.reason + " |\n")
	}
	for _, list := range []struct {
		head    string
		scripts []string
	}{{pageQuick, quick}, {pageLayered, layered}, {pageSubset, subset}} {
		if !slices.IsSorted(list.scripts) {
			t.Errorf("not sorted: %q", list.scripts)
		}
		b.WriteString(list.head + "`" + strings.Join(list.scripts, "`, `") + "`\n")
	}
	program.Page(t, page, b.String(), *update)
}
