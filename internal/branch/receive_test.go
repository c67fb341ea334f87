package branch_test

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

func quarantine(b *branchtest.Box) branch.Quarantine {
	return branch.Quarantine{Dir: filepath.Join(filepath.Dir(b.State), "quarantine"), GitLayer: b.Git, Base: b.Base, State: b.State}
}

// pack returns what the guest sends: a thin pack of HEAD without have.
func pack(b *branchtest.Box, have string) (pack []byte, want string) {
	b.T.Helper()
	if have == "" {
		have = b.Base
	}
	file := filepath.Join(filepath.Dir(b.State), "sent")
	want = b.Inside("git rev-parse HEAD; printf 'HEAD\n^" + have + "\n' | git pack-objects -q --revs --thin --stdout > " + file)
	pack, err := os.ReadFile(file)
	if err != nil {
		b.T.Fatal(err)
	}
	return pack, want
}

func receive(b *branchtest.Box, have string) *branch.Received {
	b.T.Helper()
	pack, want := pack(b, have)
	got, err := branch.Receive(gittest.Context(b.T), b.Repository, quarantine(b), bytes.NewReader(pack), want, have)
	if err != nil {
		b.T.Fatal(err)
	}
	return got
}

// step takes the agent's commits and commits the state, as after each command.
func step(b *branchtest.Box) branch.ImportResult {
	b.T.Helper()
	have, err := branch.InnerHead(gittest.Context(b.T), b.Repository, b.State, b.Name)
	if err != nil {
		b.T.Fatal(err)
	}
	q := b.Request()
	q.Agent = receive(b, have)
	return b.ImportAs(q)
}

const agent = "git config user.name Bot; git config user.email bot@example.com; "

func TestAgentCommitsComeOutAsCommits(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	log := func(n int) string {
		t.Helper()
		return b.Show("log", fmt.Sprint("-", n), "--format=%an %s", "fix")
	}
	b.Inside(agent + `echo 1 > one; git add one; git commit -qm 'first inner

body'; echo 2 > two; git add two; git commit -qm 'second inner' --author='Other <o@x>'; echo 3 > three`)
	got := step(b)
	if diff := cmp.Diff("Ada step\nOther second inner\nBot first inner\nAda first", log(4)); diff != "" {
		t.Fatal(diff)
	}
	if len(got.Agent) != 2 || got.Changed != 3 {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff("one\ntwo", b.Show("diff", "--name-only", b.Base, got.Agent[1])); diff != "" {
		t.Fatal(diff)
	}
	b.Inside("git commit -q --amend -m amended; echo 4 > four; git add four; git commit -qm third")
	step(b)
	if diff := cmp.Diff("Ada step\nBot third\nOther amended\nAda step", log(4)); diff != "" {
		t.Fatal(diff)
	}
	b.Inside("git reset -q --hard HEAD~1")
	got = step(b)
	if len(got.Agent) != 0 || b.Show("ls-tree", "--name-only", "fix", "four") != "" || b.Show("show", "fix:three") != "3" {
		t.Fatalf("%+v\n%s", got, b.Show("ls-tree", "fix"))
	}
	b.Inside("git checkout -q -b topic refs/litterbox/base; echo 5 > five; git add five; git commit -qm topic; git checkout -q fix; git rebase -q topic")
	got = step(b)
	if diff := cmp.Diff("Ada step\nOther amended\nBot first inner\nBot topic", log(4)); diff != "" {
		t.Fatal(diff)
	}
	b.Inside("git checkout -q --orphan fresh; git commit -qm orphan")
	if got = step(b); len(got.Agent) != 1 {
		t.Fatalf("%+v", got)
	}
	b.Inside("git checkout -q topic")
	if got = step(b); len(got.Agent) != 0 {
		t.Fatalf("taken again: %+v", got)
	}
	b.Show("fsck", "--full", "--strict")
}

// Ignored files that the agent tracks are tracked; those it stopped tracking are not.
func TestAgentDecidesWhatIsTracked(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside(agent + "mkdir build; echo 1 > build/out; echo 1 > other.o; git add -f build/out; git commit -qm forced; echo 2 > build/out; echo 2 > build/more")
	step(b)
	if got := b.Show("ls-tree", "-r", "--name-only", "fix", "build", "other.o"); got != "build/out" {
		t.Fatalf("tracked: %q", got)
	}
	if b.Show("show", "fix:build/out") != "2" {
		t.Fatal("not the present content")
	}
	b.Inside("echo README >> .gitignore; git rm -q --cached build/out README; git commit -qam untracked; echo 3 > build/out")
	for range 2 {
		step(b)
		if got := b.Show("ls-tree", "-r", "--name-only", "fix", "build", "README"); got != "" {
			t.Fatalf("tracked: %q", got)
		}
	}
}

func TestAgentSubmodulesStay(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside(agent + "git init -q mod; git -C mod -c user.name=x -c user.email=y commit -q --allow-empty -m x; git add mod 2>/dev/null; git commit -qm mod")
	for range 2 {
		step(b)
		if got := b.Show("ls-tree", "fix", "mod"); !strings.HasPrefix(got, "160000 commit ") {
			t.Fatalf("mod is %q", got)
		}
	}
}

func object(kind, content string) [20]byte {
	return sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", kind, len(content), content))
}

// Trees that would write outside the checkout, or into a .git, never reach the
// host's store.
func TestHostilePacksAreRefused(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	blob := object("blob", "evil\n")
	// tree writes a raw tree object of one entry and gives its id.
	raw := t.TempDir()
	tree := func(mode, name string, oid [20]byte) [20]byte {
		content := mode + " " + name + "\x00" + string(oid[:])
		id := object("tree", content)
		gittest.Write(t, raw, fmt.Sprintf("%x", id), content)
		return id
	}
	pack := func(top [20]byte) (pack []byte, want string) {
		t.Helper()
		file := filepath.Join(filepath.Dir(b.State), "hostile")
		want = b.Inside(agent + fmt.Sprintf(`
			echo evil | git hash-object -w --stdin >&2
			for f in %s/*; do git hash-object -w -t tree --literally $f >&2; done
			c=$(printf 'tree %x\nparent %%s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nhostile\n' $(git rev-parse HEAD) |
				git hash-object -w -t commit --literally --stdin)
			for o in $c %x %x; do echo $o; done > list; for f in %s/*; do basename $f; done >> list
			git pack-objects -q --stdout < list > %s; echo $c`, raw, top, top, blob, raw, file))
		pack, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return pack, want
	}
	for name, top := range map[string]func() [20]byte{
		"git hooks": func() [20]byte {
			return tree("40000", ".git", tree("40000", "hooks", tree("100755", "post-merge", blob)))
		},
		"case":       func() [20]byte { return tree("40000", ".GiT", tree("100644", "config", blob)) },
		"ntfs":       func() [20]byte { return tree("40000", "git~1", tree("100644", "config", blob)) },
		"hfs":        func() [20]byte { return tree("40000", ".g\u200cit", tree("100644", "config", blob)) },
		"parent":     func() [20]byte { return tree("40000", "..", tree("100644", "x", blob)) },
		"slash":      func() [20]byte { return tree("100644", "../../x", blob) },
		"absolute":   func() [20]byte { return tree("100644", "/etc/x", blob) },
		"empty name": func() [20]byte { return tree("100644", "", blob) },
		"mode":       func() [20]byte { return tree("104755", "x", blob) },
		"link":       func() [20]byte { return tree("120000", ".gitmodules", blob) },
		"not there":  func() [20]byte { return object("tree", "none") },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(raw); err != nil {
				t.Fatal(err)
			}
			gittest.Write(t, raw, "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "") // the empty tree
			id := top()
			if name == "not there" {
				id = object("tree", "")
			}
			sent, want := pack(id)
			if name == "not there" {
				want = strings.Repeat("1", 40)
			}
			_, err := branch.Receive(gittest.Context(t), b.Repository, quarantine(b), bytes.NewReader(sent), want, "")
			if err == nil {
				t.Fatal("accepted")
			}
			for _, oid := range []string{want, fmt.Sprintf("%x", id)} {
				if name != "not there" && exec.Command("git", "-C", b.Repository.Top, "cat-file", "-e", oid).Run() == nil {
					t.Fatalf("%s reached the host", oid)
				}
			}
		})
	}
	// The same construction with nothing hostile in it is accepted.
	if err := os.RemoveAll(raw); err != nil {
		t.Fatal(err)
	}
	sent, want := pack(tree("100644", "fine", blob))
	if got, err := branch.Receive(gittest.Context(t), b.Repository, quarantine(b), bytes.NewReader(sent), want, ""); err != nil || len(got.Commits) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	garbage := bytes.NewReader([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xffgarbage"))
	_, err := branch.Receive(gittest.Context(t), b.Repository, quarantine(b), garbage, b.Base, "")
	gittest.Kind(t, err, fault.Denied, false)
	if out := b.Show("fsck", "--full", "--strict"); strings.Contains(out, "hostile") {
		t.Fatal(out)
	}
}

// A pack cannot use the host's objects as bases or parts: only what the
// sandbox was given.
func TestPacksCannotReachTheHostsObjects(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Shell(t, dir, "git checkout -q -b other; echo secret > secret; git add secret; git commit -qm secret; git checkout -q main")
	secret := gittest.Git(t, dir, "rev-parse", "other:secret")
	b := branchtest.New(t, dir, "fix")
	file := filepath.Join(filepath.Dir(b.State), "sent")
	want := b.Inside(agent + `top=$(printf '100644 blob ` + secret + `\tstolen\n' | git mktree --missing); c=$(git commit-tree $top -p HEAD -m x)
		printf "$c\n$top\n" | git pack-objects -q --stdout > ` + file + `; echo $c`)
	pack, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = branch.Receive(gittest.Context(t), b.Repository, quarantine(b), bytes.NewReader(pack), want, "")
	gittest.Kind(t, err, fault.Denied, false)
}

// An agent's objects that stand for more than any host holds are refused before
// git reads them, leave nothing behind, and are not looked at again; its next
// commits are taken.
func TestHostileObjectsAreRefused(t *testing.T) {
	const tree = `blob=$(git hash-object -w --stdin </dev/null)
level() { for n in 0 1 2 3 4 5 6 7 8 9; do printf '%s %s\t%s\n' "$1" "$2" "$n"; done | git mktree; }
tree=$(level '100644 blob' "$blob"); for n in 1 2 3 4 5 6 7 8 9; do tree=$(level '040000 tree' "$tree"); done
git reset -q --soft $(git commit-tree -m bomb -p HEAD $tree)`
	for _, test := range []struct {
		name, script, want string
		limits             branch.Limits
	}{
		{"trees that hold each other", tree, "they change more than 1000000 paths", branch.Limits{}},
		{"a file above the limit", "head -c 5000 /dev/zero > zeros; git add zeros; git commit -qm zeros", "a file is larger than 4096 bytes", branch.Limits{FileSize: 4096}},
		{"a commit above the limit", "for n in 1 2 3; do head -c 4000 /dev/zero > f$n; echo $n >> f$n; done; git add f1 f2 f3; git commit -qm zeros", "everything together is larger than 9000 bytes", branch.Limits{Commit: 9000}},
		{"a delta that expands", "seq 90000 > n; git add n; git commit -qm n; git repack -qad; seq 90001 > n; git commit -qam n; git repack -qadf; git rev-list --objects HEAD~2..HEAD | git pack-objects -q --stdout > ../sent", "larger than 500000 bytes", branch.Limits{FileSize: 500000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := branchtest.New(t, gittest.Repository(t), "fix")
			b.Inside(agent + test.script)
			pack, want := pack(b, "")
			q := quarantine(b)
			q.Limits = test.limits
			_, err := branch.Receive(gittest.Context(t), b.Repository, q, bytes.NewReader(pack), want, "")
			if err == nil || !strings.Contains(err.Error(), test.want) || fault.KindOf(err) != fault.Denied {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if again := q.Refused(want); again == nil || again.Error() != err.Error() {
				t.Errorf("asked again: %v", again)
			}
			if left, err := filepath.Glob(filepath.Join(q.Dir, "objects", "pack", "*pack*")); err != nil || len(left) > 0 {
				t.Errorf("left in the quarantine: %q, %v", left, err)
			}
			// The control: what is wrong is in the objects, and nothing else.
			b.Inside("git reset -q --soft refs/litterbox/base; echo fine > fine; git add -A fine; git commit -qm fine")
			if q.Refused(b.Inside("git rev-parse HEAD")) != nil {
				t.Error("another commit counts as refused")
			}
			if got := step(b); len(got.Agent) != 1 || b.Show("show", "fix:fine") != "fine" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Files that a commit has no room for stay, are named, and come with the next one.
func TestCommitHasRoomForSoMuch(t *testing.T) {
	b := branchtest.New(t, gittest.Repository(t), "fix")
	b.Inside("for n in 1 2 3; do head -c 4000 /dev/zero > f$n; echo $n >> f$n; done")
	q := b.Request()
	q.Limits.Commit = 9000
	got := b.ImportAs(q)
	if got.Changed != 2 || got.Left.Count != 1 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "larger than 9000 bytes together") {
		t.Fatalf("%+v", got)
	}
	q.Last = got.Commit
	if got = b.ImportAs(q); got.Changed != 1 || got.Left.Count != 0 {
		t.Fatalf("%+v", got)
	}
}
