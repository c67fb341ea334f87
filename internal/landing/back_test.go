package landing_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// changedRepository is a repository with a commit that its checkout does not have.
func changedRepository(t *testing.T, files map[string]string) (r *git.Repository, base, tip string) {
	t.Helper()
	dir := gittest.Repository(t)
	for name, content := range files {
		gittest.Write(t, dir, name, content)
	}
	gittest.Shell(t, dir, "ln -s 'leads here' a-link; printf '#!/bin/sh\n' >run.sh; chmod 755 run.sh")
	// With autocrlf=false, so that the objects hold what is written here.
	gittest.Shell(t, dir, "base=$(git rev-parse HEAD); git -c core.autocrlf=false -c filter.evil.clean= add -A; git commit -qm tip; git tag tip; git reset -q --hard $base; git tag base")
	return gittest.Open(t, dir), gittest.Git(t, dir, "rev-parse", "base"), gittest.Git(t, dir, "rev-parse", "tip")
}

func bringAll(t *testing.T, r *git.Repository, base, tip string) landing.Back {
	t.Helper()
	plan, err := landing.PlanBack(gittest.Context(t), r, base, tip, landing.BackWants{Delete: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Bring(gittest.Context(t), r, func(landing.Change) {}); err != nil {
		t.Fatal(err)
	}
	return plan
}

// tree is what stands below a directory, but for git's own.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, at)
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(at)
			found[name] = "link to " + target
			return err
		}
		content, err := os.ReadFile(at)
		found[name] = info.Mode().String() + " " + string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What comes is what git would check out, under any settings, with the attributes
// that come too, but without the programs that attributes name.
func TestBringsWhatGitChecksOut(t *testing.T) {
	files := map[string]string{
		".gitattributes": "*.crlf eol=crlf\n*.id ident\n*.wide working-tree-encoding=UTF-16LE\n*.evil filter=evil\n*.none -text\n*.auto text=auto\n",
		"a.crlf":         "one\ntwo\n", "a.id": "$Id$\n", "a.wide": "w\x00\n\x00", "a.evil": "plain\n", "a.none": "one\n", "a.auto": "one\ntwo\n",
		"mixed.auto": "one\r\ntwo\n", "binary.auto": "\x00\n", "plain": "plain\n", "empty": "", "no end": "no end",
		"sub/.gitattributes": "*.crlf -eol\nodd eol=crlf\n", "sub/a.crlf": "one\n", "sub/odd": "one\n", "sub/line\nbreak\".crlf": "one\n",
		"empty.crlf": "", "no end.crlf": "one\ntwo", " blank.crlf": "one\n", "\ttab.crlf": "one\n", "a b\tc.crlf": "\n\n",
		"deep/er/" + strings.Repeat("n", 200): strings.Repeat("0123456789\n", 1<<16),
	}
	for _, settings := range []string{"", "core.autocrlf=true", "core.autocrlf=input", "core.eol=crlf"} {
		t.Run(settings, func(t *testing.T) {
			r, base, tip := changedRepository(t, files)
			if key, value, ok := strings.Cut(settings, "="); ok {
				gittest.Git(t, r.Top, "config", key, value)
			}
			beside := filepath.Join(t.TempDir(), "beside")
			gittest.Git(t, r.Top, "worktree", "add", "-q", "--detach", beside, tip)
			want := tree(t, beside)
			canary := filepath.Join(t.TempDir(), "canary")
			gittest.Git(t, r.Top, "config", "filter.evil.smudge", "touch "+canary)
			gittest.Git(t, r.Top, "config", "filter.evil.required", "true")
			plan := bringAll(t, r, base, tip)
			if len(plan.Writes) != len(files)+2 {
				t.Errorf("it brings %d files, want %d", len(plan.Writes), len(files)+2)
			}
			got := tree(t, r.Top)
			for _, c := range plan.Writes {
				if diff := cmp.Diff(want[c.Path], got[c.Path]); diff != "" {
					t.Error(c.Path, diff)
				}
			}
			if gittest.Exists(canary) {
				t.Error("a filter ran")
			}
			if plan = bringAll(t, r, base, tip); len(plan.Writes) != 0 {
				t.Errorf("a second time it brings %d files, %q first", len(plan.Writes), plan.Writes[0].Path)
			}
		})
	}
}

// An object that is gone is an error, and no part of the file before it.
func TestBringsNoMissingObjects(t *testing.T) {
	r, base, tip := changedRepository(t, map[string]string{".gitattributes": "*.x eol=crlf\n", "a.x": "one\n", "b.x": "two\n"})
	plan, err := landing.PlanBack(gittest.Context(t), r, base, tip, landing.BackWants{})
	if err != nil {
		t.Fatal(err)
	}
	oid := gittest.Git(t, r.Top, "rev-parse", "tip:b.x")
	if err := os.Remove(filepath.Join(r.Top, ".git/objects", oid[:2], oid[2:])); err != nil {
		t.Fatal(err)
	}
	err = plan.Bring(gittest.Context(t), r, func(landing.Change) {})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("it brings what is gone: %v", err)
	}
	if content, err := os.ReadFile(filepath.Join(r.Top, "a.x")); err == nil && string(content) != "one\r\n" {
		t.Errorf("a.x has %q", content)
	}
}

// The number of git processes does not grow with the number of files.
func TestBringsManyFilesWithFewProcesses(t *testing.T) {
	for _, attributes := range []string{"*.x text=auto\n", "*.x eol=crlf\n"} {
		t.Run(attributes, func(t *testing.T) { bringsManyFilesWithFewProcesses(t, attributes) })
	}
}

func bringsManyFilesWithFewProcesses(t *testing.T, attributes string) {
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	started := func(count int) int {
		files := map[string]string{".gitattributes": attributes}
		for i := range count {
			files[fmt.Sprintf("d%d/f%d.x", i%7, i)] = fmt.Sprintf("%d\n", i)
		}
		r, base, tip := changedRepository(t, files)
		for i := range count { // ones of the human's stand there
			gittest.Write(t, r.Top, fmt.Sprintf("d%d/f%d.x", i%7, i), "mine\r\n")
		}
		bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
		gittest.Write(t, bin, "git", "#!/bin/sh\necho \"$@\" >>"+log+"\nexec "+real+" \"$@\"\n")
		if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		plan := bringAll(t, r, base, tip)
		if len(plan.Yours) != count {
			t.Errorf("%d files of the human's, want %d", len(plan.Yours), count)
		}
		if _, err := landing.PlanForth(gittest.Context(t), r, base, landing.ForthWants{}); err != nil {
			t.Fatal(err)
		}
		calls, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(calls), "\n")
	}
	few, many := started(2), started(60)
	if few == 0 || few != many {
		t.Errorf("2 files need %d processes, 60 need %d", few, many)
	}
}

// What stands in the way is left, and named; nothing is written through a link.
func TestBringsThroughNoLink(t *testing.T) {
	r, base, tip := changedRepository(t, map[string]string{"a/b/file": "new\n", "c/file": "new\n", "d": "new\n"})
	outside := t.TempDir()
	gittest.Shell(t, r.Top, "mkdir a; ln -s "+outside+" a/b; echo mine >c; mkdir d; mkfifo run.sh")
	plan := bringAll(t, r, base, tip)
	want := []string{
		"a/b/file: in your checkout a/b is not a directory", "c/file: in your checkout c is not a directory",
		"d: in your checkout it is a directory", "run.sh: in your checkout it is not a file",
	}
	if diff := cmp.Diff(want, plan.Left); diff != "" {
		t.Error(diff)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
}
