// Package repos makes the same change in odd repositories twice, in a sandbox
// and by plain git, and compares the resulting trees. The text about each
// becomes docs/reference/repositories.md (go test ./test/repos -update).
//
// The table is in cases_linux_test.go; start reading there.
package repos_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

var update = flag.Bool("update", false, "write docs/reference/repositories.md")

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// repository is one row of the table.
type repository struct {
	name string
	says string // for the page

	// make is a script that turns the host's ordinary repository, where it
	// runs, into the odd one; $DIR is beside it, $ODD names another place.
	make string
	odd  bool // it made another repository, at $ODD
	// change is made inside, and then outside in a copy.
	change string
	// outside is run in the copy instead of change and git add -A.
	outside string
	create  []string // further arguments of create
	// also checks anything else; got is what exec printed.
	also  func(h *program.Host, got program.Result)
	needs string // a script that fails, and says why, if it cannot be tried
}

func TestRepositories(t *testing.T) {
	for _, c := range table {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			c.compare(t)
		})
	}
}

func (c repository) compare(t *testing.T) {
	h := built.New(t)
	odd := filepath.Join(h.Dir, "odd")
	h.Env = append(h.Env, "DIR="+h.Dir, "ODD="+odd, "MARK="+filepath.Join(h.Dir, "mark"), "LITTERBOX="+h.Program("litterbox"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
	if got := h.Shell("set -e\n" + c.needs); c.needs != "" && got.Code != 0 {
		t.Skip(strings.TrimSpace(got.Stdout + got.Stderr))
	}
	run(h, c.make)
	if c.odd {
		h.Repo = odd
	}
	// Before there is a sandbox, which fills its worktree at its leisure.
	copied := filepath.Join(h.Dir, "copy")
	run(h, `cp -a . "$DIR/copy"`)
	h.Must(append([]string{"create", "box"}, c.create...)...)
	run(h, `rm -f "$MARK"`)
	got := h.InsideShell("box", "set -e\n"+c.change)
	if got.Code != 0 {
		t.Fatalf("inside: exited %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if c.also != nil {
		c.also(h, got)
	}
	outside := c.outside
	if outside == "" {
		outside = c.change + "\ngit add -A"
	}
	other := *h
	other.Repo = copied
	run(&other, outside+"\ngit commit -qm outside --allow-empty")
	const list = `git ls-tree -r -t -z "$REV" | tr '\0' '\n'`
	want, have := run(&other, "REV=HEAD; "+list), run(h, "REV=box; "+list)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("git (-) and litterbox (+) differ:\n%s\nlitterbox said:\n%s", diff, got.Stderr)
	}
	run(h, "git fsck --strict --no-dangling box")
}

// run runs a script on the host, which must succeed.
func run(h *program.Host, script string) string {
	h.Helper()
	got := h.Shell("set -e\n" + script)
	if got.Code != 0 {
		h.Fatalf("on the host: exited %d\n%s\n%s%s", got.Code, script, got.Stdout, got.Stderr)
	}
	return got.Stdout
}

const page = "../../docs/reference/repositories.md"

// The page says what the table says.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, c := range table {
		b.WriteString("| " + c.name + " | " + c.says + " |\n")
	}
	b.WriteString(pageTail)
	program.Page(t, page, b.String(), *update)
}
