package guest_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

func TestHead(t *testing.T) {
	b := newBox(t)
	check := func(what, branch string) {
		t.Helper()
		commit := b.sh("git rev-parse -q --verify HEAD || true")
		got, err := wire.FindHead(limit(t), b.open())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(wire.Head{Commit: commit, Branch: branch}, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if got, err := wire.FindHead(limit(t), b.open()); err != nil || got != (wire.Head{Damage: wire.DamageGone}) {
		t.Errorf("no repository: %+v, %v", got, err)
	}
	b.sh("git init -q -b main")
	check("unborn", "refs/heads/main")
	b.sh("git commit -q --allow-empty -m one")
	check("loose", "refs/heads/main")
	b.sh("git branch other; git pack-refs --all")
	check("packed", "refs/heads/main")
	b.sh("git checkout -q -b deep/er; git commit -q --allow-empty -m two")
	check("loose over packed", "refs/heads/deep/er")
	b.sh("git checkout -q --detach")
	check("detached", "")
	b.sh("git symbolic-ref refs/heads/alias refs/heads/other; git symbolic-ref HEAD refs/heads/alias")
	check("a ref to a ref", "refs/heads/other")
	b.sh("git symbolic-ref HEAD refs/heads/main; git config core.note refStorage")
	check("asked from git", "refs/heads/main")
	b.sh("mv .git real; echo 'gitdir: real' >.git")
	check("a .git file", "refs/heads/main")
	// A file that makes git wait forever must not make any other process wait.
	b.sh("rm .git; mv real .git; git config --unset core.note; mkfifo p; mv .git/HEAD h; mv p .git/HEAD")
	if got, err := wire.FindHead(limit(t), b.open()); err != nil || got != (wire.Head{Damage: wire.DamageHead}) {
		t.Errorf("a FIFO in place of HEAD: %+v, %v", got, err)
	}
	b.sh("rm .git/HEAD; mv h .git/HEAD; rm .git/config; mkfifo .git/config")
	if got, err := wire.FindHead(limit(t), b.open()); fault.KindOf(err) != fault.Timeout {
		t.Errorf("a FIFO in place of the configuration: %+v, %v", got, err)
	}
	if left := processes(t, b); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestExport(t *testing.T) {
	b := newBox(t)
	b.sh(`git init -q; seq 3000 >big; git add big; git commit -q -m one; echo more >>big; git commit -q -a -m two`)
	have, want := b.sh("git rev-parse HEAD~"), b.sh("git rev-parse HEAD")

	var whole, thin bytes.Buffer
	if err := wire.Export(limit(t), b.open(), "", have, &whole); err != nil {
		t.Fatal(err)
	}
	if err := wire.Export(limit(t), b.open(), have, want, &thin); err != nil {
		t.Fatal(err)
	}
	if thin.Len() > whole.Len()/2 {
		t.Errorf("the thin pack has %d bytes, the whole one %d", thin.Len(), whole.Len())
	}
	// The host's git can take one after the other.
	host := filepath.Join(b.dir, "host.git")
	git(t, nil, "init", "-q", "--bare", host)
	git(t, &whole, "-C", host, "index-pack", "--stdin", "--strict")
	git(t, &thin, "-C", host, "index-pack", "--stdin", "--fix-thin", "--strict")
	git(t, nil, "-C", host, "cat-file", "-e", want+":big")

	missing := strings.Repeat("0123456789", 4)
	if err := wire.Export(limit(t), b.open(), "", missing, &whole); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), missing) {
		t.Errorf("a commit that is not there: %v", err)
	}
	for _, id := range []string{"HEAD", "--all", "", strings.ToUpper(want), want + "\n^" + have} {
		if err := wire.Export(limit(t), b.open(), "", id, &whole); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func git(t *testing.T, stdin *bytes.Buffer, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func TestShutdown(t *testing.T) {
	b := newBox(t)
	b.run(wire.Exec{Argv: argv("sh", "-c", `
		(trap 'echo saved >saved; exit' TERM; echo >a; while :; do sleep 0.01; done) >/dev/null 2>&1 &
		(trap '' TERM; echo >b; while :; do sleep 0.01; done) >/dev/null 2>&1 &
		until [ -e a ] && [ -e b ]; do sleep 0.01; done`)}, nil)
	// The deaf one uses all of the time that the other one may need.
	if err := wire.Shutdown(limit(t), b.open(), 4*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := b.process.Wait(); err != nil {
		t.Errorf("the guest ended with %v", err)
	}
	if got := read(t, filepath.Join(b.upper, "saved")); got != "saved\n" {
		t.Errorf("TERM gave no time to save: %q", got)
	}
	if _, err := b.link.Open(); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("the link goes on: %v", err)
	}
}
