package branch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// Conversions are applied as data, exactly as git's own `git add` does, and no
// filter, monitor or hook of any configuration runs.
func TestConversionsMatchGitAndNothingRuns(t *testing.T) {
	dir := gittest.Repository(t)
	canary := filepath.Join(t.TempDir(), "canary")
	trap := "touch " + canary
	for _, kv := range [][2]string{
		{"core.fsmonitor", trap}, {"filter.evil.clean", trap + "; cat"}, {"filter.evil.smudge", trap + "; cat"},
		{"filter.evil.process", trap}, {"diff.external", trap}, {"diff.evil.textconv", trap}, {"gpg.program", trap},
		{"commit.gpgsign", "true"}, {"core.hooksPath", filepath.Join(dir, "hooks")}, {"core.pager", trap},
		{"core.editor", trap}, {"core.sshCommand", trap}, {"core.askPass", trap}, {"log.showSignature", "true"},
	} {
		gittest.Git(t, dir, "config", "--global", kv[0], kv[1])
	}
	for _, hook := range []string{"post-checkout", "reference-transaction", "pre-commit", "post-commit", "post-index-change", "post-rewrite", "pre-auto-gc"} {
		gittest.Write(t, dir, "hooks/"+hook, "#!/bin/sh\n"+trap+"\n")
	}
	gittest.Write(t, dir, ".gitattributes", "*.evil filter=evil diff=evil\n*.txt text\n*.auto text=auto\n*.crlf text eol=crlf\n*.id ident\n")
	gittest.Write(t, dir, "one.evil", "x\n")
	gittest.Write(t, dir, "one.txt", "a\nb\n")
	gittest.Write(t, dir, "one.crlf", "a\nb\n")
	gittest.Write(t, dir, "one.id", "$Id$\n")
	gittest.Shell(t, dir, `chmod +x hooks/*; git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c filter.evil.clean=cat -c filter.evil.process= -c commit.gpgsign=false add -A
		git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c filter.evil.clean=cat -c filter.evil.process= commit --no-gpg-sign -qm attributes`)
	if err := os.Remove(canary); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}

	b := branchtest.New(t, dir, "fix")
	want, _, _ := strings.Cut(b.Inside(`
		export GIT_CONFIG_GLOBAL=/dev/null
		touch one.txt one.crlf one.id one.evil
		printf 'a\r\nb\r\n' > two.txt; printf 'a\r\nb\r\n' > two.auto; printf 'a\r\nb\r\n' > two.bin
		printf '$Id: 0123 $\n' > two.id; printf 'x\n' > two.evil; printf 'a\r\nb\n' > two.crlf
		printf '*.bin text\n' >> .gitattributes
		`+branchtest.GitTree), "\n")
	got := b.ImportNow()
	if got.Tree != want {
		t.Errorf("the trees differ: %q", got.Notes)
	}
	q := b.Request()
	q.Preview = true
	b.ImportAs(q)
	ctx := gittest.Context(t)
	if _, err := branch.Milestone(ctx, b.Repository, branch.MilestoneRequest{
		ID: "id-fix", Branch: "fix", Onto: b.Base, Subject: "all", Author: b.Request().Author, State: b.State,
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Repository.Consolidate(ctx, b.Consolidation()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := branch.Trash(ctx, b.Repository, "fix", "fix", branchtest.SomeTime); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(canary); err == nil {
		t.Fatal("something of the configuration ran")
	}
}
