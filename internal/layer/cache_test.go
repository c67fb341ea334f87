package layer_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

func TestTreeIsSharedByThoseWhoRaceForIt(t *testing.T) {
	r := gittest.Open(t, gittest.Repository(t))
	old := syscall.Umask(0o077) // must not matter
	defer syscall.Umask(old)
	cache := layer.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	// A build that was killed.
	gittest.Write(t, cache.Dir, "trees/"+r.HeadTree+"-x.partial-0/files/README", "half")
	got := make([]layer.Tree, 10)
	errs := make([]error, 10)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i], errs[i] = cache.Tree(gittest.Context(t), r, r.HeadTree, git.Owner{}, nil) })
	}
	all.Wait()
	for i := range got {
		if errs[i] != nil || got[i] != got[0] {
			t.Fatalf("%d: %+v %v", i, got[i], errs[i])
		}
	}
	modes := map[string]os.FileMode{}
	err := filepath.WalkDir(got[0].Dir, func(path string, d os.DirEntry, err error) error {
		info, statErr := d.Info()
		rel, _ := filepath.Rel(got[0].Dir, path)
		if statErr == nil && info.Mode()&os.ModeSymlink == 0 {
			modes[rel] = info.Mode()
		}
		return err
	})
	want := map[string]os.FileMode{
		".": 0o755 | os.ModeDir, "src": 0o755 | os.ModeDir, "src/lib": 0o755 | os.ModeDir, "docs": 0o755 | os.ModeDir,
		"tools": 0o755 | os.ModeDir, "tools/run.sh": 0o755, "README": 0o644, ".gitignore": 0o644, "src/main.c": 0o644,
		"src/lib/a.c": 0o644, "src/lib/b.c": 0o644, "docs/one.md": 0o644,
	}
	if diff := cmp.Diff(want, modes); err != nil || diff != "" {
		t.Fatal(diff, err)
	}
}

// An entry from before a reboot is used only if it is whole.
func TestTreeIsVerifiedAfterAReboot(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	again := func() string {
		t.Helper()
		tree, err := b.Cache.Tree(gittest.Context(t), b.Repository, b.Repository.HeadTree, git.Owner{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(tree.Dir, "README"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Cache.Git(gittest.Context(t), b.Repository, b.Base, tree, git.Owner{}, nil); err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	reboot := func() {
		t.Helper()
		markers, err := filepath.Glob(filepath.Join(b.Cache.Dir, "*/*/complete"))
		if err != nil || len(markers) != 3 {
			t.Fatal(markers, err)
		}
		for _, m := range markers {
			if err := os.WriteFile(m, []byte("another boot"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, err := os.Stat(b.Layers[0])
	if err != nil {
		t.Fatal(err)
	}
	reboot()
	again()
	if after, err := os.Stat(b.Layers[0]); err != nil || !os.SameFile(before, after) {
		t.Fatal("a whole entry was built again")
	}
	reboot()
	if err := os.Truncate(filepath.Join(b.Layers[0], "README"), 0); err != nil {
		t.Fatal(err)
	}
	packs, err := filepath.Glob(filepath.Join(b.Git, ".git/objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	if err := errors.Join(os.Chmod(packs[0], 0o644), os.Truncate(packs[0], 50)); err != nil {
		t.Fatal(err)
	}
	if got := again(); got != "hello\n" {
		t.Fatalf("README is %q", got)
	}
	if out := b.Inside("git fsck --strict && git log --format=%s"); out != "first" {
		t.Fatalf("inside: %q", out)
	}
}

// kill -9 of the program that checks out, and of its git, leaves nothing that
// the next one does not remove.
func TestTreeSurvivesKill(t *testing.T) {
	dir := gittest.Repository(t)
	for i := range 400 {
		gittest.Write(t, dir, "many/"+strings.Repeat("d", i%7+1)+"/"+string(rune('a'+i%26))+strings.Repeat("x", i/26), strings.Repeat("line\n", 200))
	}
	gittest.Shell(t, dir, "git add -A; git commit -qm many")
	r := gittest.Open(t, dir)
	cache := filepath.Join(t.TempDir(), "cache")
	for range 3 {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestHelperTree$", "-test.v")
		cmd.Env = append(os.Environ(), "LITTERBOX_TEST_TREE="+cache, "LITTERBOX_TEST_REPOSITORY="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// It says when git has begun.
		var seen bytes.Buffer
		for b := make([]byte, 256); !strings.Contains(seen.String(), "progress"); {
			n, err := out.Read(b)
			seen.Write(b[:n])
			if err != nil {
				t.Fatalf("the helper ended: %s", seen.String())
			}
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		if left, _ := filepath.Glob(filepath.Join(cache, "trees", "*.partial-*")); len(left) == 0 {
			t.Fatal("the helper was not killed in the middle")
		}
	}
	tree, err := layer.Cache{Dir: cache}.Tree(gittest.Context(t), r, r.HeadTree, git.Owner{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "trees", "*.partial-*")); len(left) != 0 {
		t.Fatalf("left behind: %q", left)
	}
	gittest.Shell(t, tree.Dir, "diff -r --exclude=.git . "+dir)
}

// TestHelperTree is the program that TestTreeSurvivesKill kills.
func TestHelperTree(t *testing.T) {
	cache, dir := os.Getenv("LITTERBOX_TEST_TREE"), os.Getenv("LITTERBOX_TEST_REPOSITORY")
	if cache == "" {
		return // only as a child
	}
	r := gittest.Open(t, dir)
	_, err := layer.Cache{Dir: cache}.Tree(gittest.Context(t), r, r.HeadTree, git.Owner{}, func(string, int, int) {
		_, _ = os.Stdout.WriteString("progress\n")
		select {} // wait to be killed
	})
	t.Fatal("not killed", err)
}

// The host's objects would expose what was never on the branch.
func TestGitHoldsOnlyWhatTheBaseReaches(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Git(t, dir, "tag", "-a", "-m", "annotated", "v1")
	gittest.Git(t, dir, "tag", "light")
	gittest.Write(t, dir, ".env", "PASSWORD=1")
	gittest.Shell(t, dir, "git checkout -q -b other; git add -f .env; git commit -qm secret; git tag -a -m secret v-secret; git checkout -q main")
	gittest.Write(t, dir, "README", "stashed")
	gittest.Git(t, dir, "stash", "-q")
	gittest.Write(t, dir, "README", "second")
	gittest.Git(t, dir, "commit", "-qam", "second")
	secret := gittest.Git(t, dir, "rev-parse", "other:.env")
	stash := gittest.Git(t, dir, "rev-parse", "stash")

	b := branchtest.New(t, dir, "fix")
	out := b.Inside("git cat-file --batch-all-objects --batch-check; git for-each-ref; git status --short --branch; git fsck --strict")
	for _, hidden := range []string{secret, stash, "v-secret", "other"} {
		if strings.Contains(out, hidden) {
			t.Errorf("%q can be seen inside:\n%s", hidden, out)
		}
	}
	for _, wanted := range []string{"refs/tags/v1", "refs/tags/light", "refs/litterbox/base", "## fix"} {
		if !strings.Contains(out, wanted) {
			t.Errorf("%q is missing inside:\n%s", wanted, out)
		}
	}
}

// Where an ancestor's history is cached, its packs are shared; where another
// branch's is, they are not.
func TestGitSharesTheHistoryOfAncestorsOnly(t *testing.T) {
	dir := gittest.Repository(t)
	b := branchtest.New(t, dir, "one")
	layer := func() string {
		t.Helper()
		r := gittest.Open(t, dir)
		tree, err := b.Cache.Tree(gittest.Context(t), r, r.HeadTree, git.Owner{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Cache.Git(gittest.Context(t), r, r.Head, tree, git.Owner{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	packs := func(layer string) int {
		found, err := filepath.Glob(filepath.Join(layer, ".git/objects/pack/*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	gittest.Shell(t, dir, "git checkout -q -b side; echo side > side; git add side; git commit -qm side")
	if n := packs(layer()); n != 2 {
		t.Fatalf("%d packs, want the ancestor's and one more", n)
	}
	side := gittest.Git(t, dir, "rev-parse", "side:side")
	gittest.Shell(t, dir, "git checkout -q main; echo more > more; git add more; git commit -qm more")
	g := layer()
	if n := packs(g); n != 2 {
		t.Fatalf("%d packs, want the ancestor's and one more", n)
	}
	gittest.Shell(t, dir, "for p in "+g+"/.git/objects/pack/*.idx; do git show-index < $p; done > "+filepath.Join(b.Cache.Dir, "list"))
	list, err := os.ReadFile(filepath.Join(b.Cache.Dir, "list"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(list), side) || !strings.Contains(string(list), gittest.Git(t, dir, "rev-parse", "HEAD")) {
		t.Fatalf("wrong objects:\n%s", list)
	}
	// What the ancestor's packs hold is not packed again.
	seen := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		oid := strings.Fields(line)[1]
		if seen[oid] {
			t.Errorf("%s is in two packs", oid)
		}
		seen[oid] = true
	}
}

// The first `git status` inside must not read every file again.
func TestTemplateIndexIsFresh(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	out := b.Inside("git diff-files --name-only")
	if strings.Contains(out, "README") {
		t.Fatalf("inside: %q", out)
	}
	// git hashes again what is not older than the index, in whole seconds.
	index, err := os.Stat(filepath.Join(b.Git, ".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.Stat(filepath.Join(b.Layers[0], "README"))
	if err != nil {
		t.Fatal(err)
	}
	if readme.ModTime().Unix() >= index.ModTime().Unix() {
		t.Fatalf("README (%s) is not older than the index (%s)", readme.ModTime(), index.ModTime())
	}
	if got := b.Inside("git ls-files --debug README | grep uid"); !strings.Contains(got, "uid: 0\tgid: 0") {
		t.Fatalf("owner: %q", got)
	}
}

func TestShallowClonesWork(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Write(t, dir, "README", "two")
	gittest.Git(t, dir, "commit", "-qam", "two")
	clone := filepath.Join(t.TempDir(), "clone")
	gittest.Git(t, dir, "clone", "-q", "--depth=1", "file://"+dir, clone)
	b := branchtest.New(t, clone, "fix")
	if out := b.Inside("git fsck && git log --format=%s && echo x > x && git add x && git commit -qm inner"); out != "two" {
		t.Fatalf("inside: %q", out)
	}
	if r := b.ImportNow(); r.Changed != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestSHA256RepositoriesWork(t *testing.T) {
	gittest.Home(t)
	dir := t.TempDir()
	gittest.Shell(t, dir, "git init -q --object-format=sha256; echo x > x; git add x; git commit -qm x")
	b := branchtest.New(t, dir, "fix")
	want, _, _ := strings.Cut(b.Inside("echo y > y && "+branchtest.GitTree), "\n")
	if got := b.ImportNow(); got.Tree != want {
		t.Fatalf("%+v, want %s", got, want)
	}
}

// The state directory may be on another file system than the repository.
func TestHistoryOnAnotherFileSystem(t *testing.T) {
	dir := gittest.Repository(t)
	other, err := os.MkdirTemp("/dev/shm", "litterbox-test-")
	if err != nil {
		t.Skip("no other file system to write to: ", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	var here, there syscall.Stat_t
	if err := errors.Join(syscall.Stat(dir, &here), syscall.Stat(other, &there)); err != nil || here.Dev == there.Dev {
		t.Skip("/dev/shm is no other file system: ", err)
	}
	// Characters that separate and quote.
	odd := filepath.Join(filepath.Dir(dir), `odd: "quoted" \back`)
	if err := os.Rename(dir, odd); err != nil {
		t.Fatal(err)
	}
	r := gittest.Open(t, odd)
	cache := layer.Cache{Dir: filepath.Join(other, "cache")}
	made, err := cache.Layers(gittest.Context(t), r, r.Head, r.HeadTree, git.Owner{}, nil)
	layers := made.Dirs
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache.Dir, "packs/*/*.odb")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	packs, err := filepath.Glob(filepath.Join(layers[len(layers)-1], ".git/objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("packs %q, %v", packs, err)
	}
}
