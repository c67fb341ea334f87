package hostile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// makeHostile makes a tree with everything that a removal by paths stumbles on.
func makeHostile(t *testing.T) (dir, kept string) {
	t.Helper()
	top := t.TempDir()
	dir, kept = filepath.Join(top, "tree"), filepath.Join(top, "kept")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(kept, []byte("kept"), 0o600))
	must(t, os.Symlink("../kept", filepath.Join(dir, "link")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for _, name := range []string{"\xff\xfe", "a\nb", "-rf", strings.Repeat("x", 255), " ", "deep-1", "deep-2"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name, name), nil, 0o000))
	}
	many := filepath.Join(dir, "many")
	must(t, os.Mkdir(many, 0o700))
	for i := range 1500 {
		must(t, os.WriteFile(filepath.Join(many, fmt.Sprint(i)), nil, 0o400))
	}
	// Deeper than a path can be, without permissions all the way.
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range 600 {
		must(t, unix.Mkdirat(at, "deeper-down", 0o700))
		next, err := unix.Openat(at, "deeper-down", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Fchmod(at, 0))
		must(t, unix.Close(at))
		at = next
	}
	must(t, unix.Fchmod(at, 0))
	must(t, unix.Close(at))
	return dir, kept
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir, kept := makeHostile(t)
	must(t, hostile.Remove(dir))
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if content, err := os.ReadFile(kept); err != nil || string(content) != "kept" {
		t.Errorf("what a link led to: %q, %v", content, err)
	}
	must(t, hostile.Remove(dir))
	must(t, hostile.Remove(filepath.Join(dir, "below", "nothing")))
	must(t, hostile.Remove(kept))
}

// Several deep trees are removed at the same time, each by moving what is deep to
// the same directory, under names that the tree has already.
func TestRemoveManyDeep(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tree")
	for i := range 30 {
		at := filepath.Join(dir, fmt.Sprintf("deep-%d", i), strings.Repeat("d/", 60))
		must(t, os.MkdirAll(at, 0o700))
		for j := range 20 {
			must(t, os.WriteFile(filepath.Join(at, fmt.Sprint(j)), nil, 0o600))
		}
	}
	must(t, hostile.Remove(dir))
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// A link is removed, not its target, even at the top.
func TestRemoveLink(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	must(t, os.Mkdir(filepath.Join(top, "dir"), 0o700))
	must(t, os.Symlink("dir", filepath.Join(top, "link")))
	must(t, hostile.Remove(filepath.Join(top, "link")))
	if _, err := os.Stat(filepath.Join(top, "dir")); err != nil {
		t.Error(err)
	}
}

func TestRootAndFile(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(top, "home/logs"), 0o700))
	must(t, os.WriteFile(filepath.Join(top, "home/logs/file"), []byte("text"), 0o600))
	must(t, os.Symlink("logs", filepath.Join(top, "home/link")))
	must(t, unix.Mkfifo(filepath.Join(top, "home/pipe"), 0o600))
	must(t, os.Symlink("/etc", filepath.Join(top, "home/away")))
	root, err := hostile.Root(filepath.Join(top, "home"), "logs")
	must(t, err)
	if _, err := root.Stat("file"); err != nil {
		t.Error(err)
	}
	must(t, root.Close())
	// Each of these would wait for ever, or lead somewhere else.
	for _, name := range []string{"pipe", "away", "link", "none", "logs/file", "../home/logs"} {
		if root, err := hostile.Root(filepath.Join(top, "home"), name); err == nil {
			t.Errorf("%s is a directory: %v", name, root.Close())
		}
	}
	if root, err := hostile.Root(filepath.Join(top, "home/pipe"), "."); err == nil {
		t.Errorf("a pipe at the top is a directory: %v", root.Close())
	}
	home, err := hostile.Directory(filepath.Join(top, "home"))
	must(t, err)
	defer home.Close()
	file, err := hostile.File(home, "logs/file")
	must(t, err)
	if content, err := io.ReadAll(file); err != nil || string(content) != "text" {
		t.Errorf("%q, %v", content, err)
	}
	must(t, file.Close())
	for _, name := range []string{"pipe", "away", "link/file", "logs", "none"} {
		if file, err := hostile.File(home, name); err == nil {
			t.Errorf("%s is a regular file: %v", name, file.Close())
		}
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	dir, _ := makeHostile(t)
	must(t, os.Chmod(dir, 0o700))
	count := 0
	hostile.Walk(dir, func(hostile.Entry) { count++ })
	if count < 1500 {
		t.Errorf("%d entries", count)
	}
	must(t, hostile.Remove(dir))
}
