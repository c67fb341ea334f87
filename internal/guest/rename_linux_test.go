package guest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lowerTree is a directory with everything a lower layer can hold.
func lowerTree(t *testing.T) func(string) {
	return func(lower string) {
		write(t, filepath.Join(lower, "dir/file"), "file", 0o640)
		write(t, filepath.Join(lower, "dir/run"), "run", 0o755)
		write(t, filepath.Join(lower, "dir/sub/deep/er/file"), "deep", 0o444)
		write(t, filepath.Join(lower, "dir/closed/file"), "closed", 0o444)
		write(t, filepath.Join(lower, "other/file"), "other", 0o644)
		if err := os.Symlink("sub/deep", filepath.Join(lower, "dir/link")); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"dir/empty", "dir/sub/empty"} {
			if err := os.Mkdir(filepath.Join(lower, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(lower, "dir/closed"), 0o555); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(filepath.Join(lower, "dir"), "user.note", []byte("kept"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// listing shows names, types, modes, sizes, times and contents below a directory.
func (b *box) listing(dir string) string {
	b.t.Helper()
	return b.sh("cd " + dir + ` && find . -printf '%p %y %m %T@ %l ' -type f -exec cat {} ';' -printf '\n' | sort`)
}

// rename makes the system call, without mv's second thoughts.
func (b *box) rename(from, to string) outcome {
	b.t.Helper()
	return b.role("rename", "A="+from, "B="+to)
}

func TestRenameDirectory(t *testing.T) {
	for _, c := range []struct {
		name, script string
		from         string // renamed to "new" after the script; empty: the script did
	}{
		{"rename", "", "dir"},
		{"trailing slash", "", "dir/"},
		{"absolute", "", "$PWD/dir"},
		{"through a link", "ln -s . here", "here/dir"},
		{"beside the parent", "", "other/../dir"},
		{"onto an empty directory", "mkdir new", "dir"},
		{"changed before", "echo x >dir/more; rm dir/more; chmod 700 dir/sub; chmod 755 dir/sub; touch -r keep dir", "dir"},
		{"mv", "mv dir new", ""},
		{"mv of a path", "cd other; mv -T ../dir $PWD/../new", ""},
		{"mv twice", "mv dir once; mv once new", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t, lowerTree(t))
			inode := b.sh("touch -r dir keep; stat -c %i dir/sub/deep/er/file")
			before := b.listing("dir")
			b.sh(":;" + c.script)
			if c.from != "" {
				from := strings.ReplaceAll(c.from, "$PWD", b.workspace)
				if diff := cmp.Diff(outcome{}, b.rename(from, "new")); diff != "" {
					t.Fatal(diff)
				}
			}
			if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(b.listing("new"), "\n")); diff != "" {
				t.Error(diff)
			}
			if got := b.sh("stat -c %i new/sub/deep/er/file"); got != inode {
				t.Error("the files were copied, not renamed")
			}
			if got := b.sh("rm -f here; ls -A"); got != "keep\nnew\nother" {
				t.Errorf("afterwards: %s", got)
			}
			var value [8]byte
			n, err := unix.Getxattr(filepath.Join(b.upper, "new"), "user.note", value[:])
			if err != nil || string(value[:n]) != "kept" {
				t.Errorf("extended attribute: %q, %v", value[:max(n, 0)], err)
			}
		})
	}
}

// Without the answers the kernel refuses, or this file tests nothing.
func TestRenameDirectoryNeedsHelp(t *testing.T) {
	b := prepareBox(t)
	lowerTree(t)(filepath.Join(b.dir, "lower"))
	b.start(stage{NoFilter: true})
	if got := b.rename("dir", "new"); got.Code == 0 || !strings.Contains(got.Err, "invalid cross-device link") {
		t.Errorf("%+v", got)
	}
}

func TestRenameInGit(t *testing.T) {
	b := newBox(t, func(lower string) {
		lowerTree(t)(lower)
		git(t, nil, "-C", lower, "init", "-q")
		git(t, nil, "-C", lower, "add", ".")
		git(t, nil, "-C", lower, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "one")
	})
	if got := b.sh("git status --short; git mv dir new; git mv new/sub new/bus; git status --short | sort; find .git -path '*litterbox*/tree*'"); got != strings.Join([]string{
		"R  dir/closed/file -> new/closed/file", "R  dir/file -> new/file", "R  dir/link -> new/link", "R  dir/run -> new/run",
		"R  dir/sub/deep/er/file -> new/bus/deep/er/file",
	}, "\n") {
		t.Error(got)
	}
	// When the scratch directory cannot be inside the one that moves.
	moved := []outcome{b.rename(".git", "hidden"), b.rename("hidden", ".git")}
	if diff := cmp.Diff(make([]outcome, 2), moved); diff != "" {
		t.Error(diff)
	}
	if got := b.sh("ls -A; git status --short | wc -l; git fsck"); got != ".git\nnew\nother\n5" {
		t.Error(got)
	}
}

// Emptying or removing the probe gains nothing and breaks nothing.
func TestRenameProbeIsAttacked(t *testing.T) {
	b := newBox(t, lowerTree(t))
	b.sh("mkdir .git plain; echo x >plain/file; mv plain moved")
	for _, attack := range []string{"rmdir .git/litterbox-*/probe/full", "rm -rf .git/litterbox-*", "rm -rf .git", "mkdir .git; mkdir plain; mv plain plainer"} {
		b.sh(attack)
		b.sh("touch -r moved keep")
		want := b.listing("moved")
		for _, names := range [][2]string{{"moved", "again"}, {"again", "moved"}} {
			if diff := cmp.Diff(outcome{}, b.rename(names[0], names[1])); diff != "" {
				t.Errorf("%s: %s", attack, diff)
			}
		}
		if diff := cmp.Diff(want, b.listing("moved")); diff != "" {
			t.Errorf("%s: %s", attack, diff)
		}
	}
	if diff := cmp.Diff(outcome{}, b.rename("dir", "new")); diff != "" {
		t.Error(diff)
	}
}

func TestRenameExchange(t *testing.T) {
	b := newBox(t, lowerTree(t))
	dir, other := b.listing("dir"), b.listing("other")
	if diff := cmp.Diff(outcome{}, b.role("exchange", "A=dir", "B=other")); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{dir, other}, []string{b.listing("other"), b.listing("dir")}); diff != "" {
		t.Error(diff)
	}
	b.sh("echo plain >plain")
	if diff := cmp.Diff(outcome{}, b.role("exchange", "A=plain", "B=other")); diff != "" {
		t.Fatal(diff)
	}
	if got := b.sh("cat other; ls plain/sub"); got != "plain\ndeep\nempty" {
		t.Error(got)
	}
}

// The kernel still refuses what it refuses for other reasons, and nothing is
// left over.
func TestRenameRefused(t *testing.T) {
	b := newBox(t, lowerTree(t))
	before := b.listing("dir") + b.listing("other") + b.sh("ls -A")
	for _, c := range []struct{ from, to, want string }{
		{"dir", "dir/sub/new", "invalid argument"},
		{"dir", "other", "directory not empty"},
		{"dir", "other/file", "not a directory"},
		{"dir", "gone/new", "no such file or directory"},
		{"gone", "new", "no such file or directory"},
		{"dir/.", "new", "device or resource busy"},
		{".", "new", "device or resource busy"},
		{"dir", "/run/new", "invalid cross-device link"},
	} {
		if got := b.rename(c.from, c.to); got.Code == 0 || !strings.Contains(got.Err, c.want) {
			t.Errorf("%s to %s: %+v, want %s", c.from, c.to, got, c.want)
		}
	}
	after := b.listing("dir") + b.listing("other") + b.sh("ls -A")
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")); diff != "" {
		t.Error(diff)
	}
	b.sh("mv other /run/new; [ -e /run/new/file ] && [ ! -e other ]")
}

func TestRenameAtOnce(t *testing.T) {
	const directories, files = 8, 50
	b := newBox(t, func(lower string) {
		for d := range directories {
			for f := range files {
				write(t, filepath.Join(lower, fmt.Sprintf("d%d/s/f%d", d, f)), "x", 0o644)
			}
		}
	})
	var running sync.WaitGroup
	for d := range directories {
		running.Go(func() {
			b.sh(fmt.Sprintf("for i in $(seq 20); do mv d%d e%d; mv e%d d%d; touch a%d; mv a%d b%d; done", d, d, d, d, d, d, d))
		})
	}
	running.Wait()
	if got := b.sh("find d* -type f | wc -l; ls"); got != fmt.Sprintf("%d\nb0\nb1\nb2\nb3\nb4\nb5\nb6\nb7\nd0\nd1\nd2\nd3\nd4\nd5\nd6\nd7", directories*files) {
		t.Error(got)
	}
}

// After a crash at any moment, the next start puts everything back.
func TestRenameIsRecovered(t *testing.T) {
	for _, c := range []struct{ name, state string }{
		{"before the first file", "mkdir $S/tree"},
		{"after some files", "mkdir $S/tree; mv dir/file $S/tree; chmod 700 dir/closed; mkdir $S/tree/closed; mv dir/closed/file $S/tree/closed"},
		{"in a subdirectory", "mkdir -p $S/tree/sub/deep/er; mv dir/file $S/tree; mv dir/sub/deep/er/file $S/tree/sub/deep/er; rmdir dir/sub/deep/er"},
		{"with everything moved", "mkdir $S/tree; mv dir/file dir/run dir/link $S/tree; cp -a dir/sub dir/closed dir/empty $S/tree; rm -rf dir/sub/* dir/empty; chmod 700 dir/closed; rm -r dir/sub dir/closed"},
		{"before the journal", "rm $S/journal"},
		{"after the replacement", ":"},
	} {
		for _, scratch := range []string{".git/litterbox-rename-X", "litterbox-rename-X"} {
			t.Run(c.name+" in "+filepath.Dir(scratch), func(t *testing.T) {
				b := prepareBox(t)
				lowerTree(t)(filepath.Join(b.dir, "lower"))
				b.start(stage{})
				b.sh("mkdir -p .git")
				names := "cd dir; find . -type f -exec cat {} ';' -print | sort; readlink link; find . -type d | sort"
				before := b.sh(names)
				b.sh(fmt.Sprintf(`S=%s; mkdir -p $S/probe/full; printf %%s "$PWD/dir" >$S/journal; %s`, scratch, c.state))
				if err := wire.Shutdown(limit(t), b.open(), 0); err != nil {
					t.Fatal(err)
				}
				_ = b.process.Wait()
				b.start(stage{})
				if diff := cmp.Diff(before, b.sh(names)); diff != "" {
					t.Error(diff)
				}
				if got := b.sh("ls -A . .git | grep litterbox || true"); got != "" {
					t.Errorf("left: %s", got)
				}
			})
		}
	}
}

// If a file of the same name was made meanwhile, neither is lost.
func TestRenameRecoveryKeepsBoth(t *testing.T) {
	b := newBox(t, lowerTree(t))
	b.sh(`S=litterbox-rename-X; mkdir -p $S/tree; printf %s "$PWD/dir" >$S/journal; mv dir/file $S/tree; mv dir/run $S/tree; echo newer >dir/file`)
	if err := wire.Shutdown(limit(t), b.open(), 0); err != nil {
		t.Fatal(err)
	}
	_ = b.process.Wait()
	b.start(stage{})
	if got := b.sh("cat dir/file litterbox-rename-X/tree/file dir/run"); got != "newer\nfilerun" {
		t.Error(got)
	}
}
