package userland_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/userland"
)

// host makes a root directory with files that everyone, or not everyone, can read.
func host(t *testing.T) string {
	root := t.TempDir()
	for name, file := range map[string]struct {
		content string
		mode    fs.FileMode
	}{
		"etc/passwd":               {"root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n", 0o644},
		"etc/group":                {"root:x:0:\nadm:x:4:ann\nann:x:1000:\n", 0o644},
		"etc/shadow":               {"root:$y$secret:1::::::\n", 0o644}, // even then
		"etc/hostname":             {"ann-laptop\n", 0o644},
		"etc/apt/sources.list":     {"deb http://deb.example.org/ stable main\n", 0o644},
		"etc/apt/auth.conf":        {"machine deb.example.org password secret\n", 0o600},
		"etc/ssl/private/key.pem":  {"secret\n", 0o644}, // below a closed directory
		"etc/group-only":           {"secret\n", 0o640},
		"usr/bin/tool":             {"#!/bin/sh\n", 0o755},
		"usr/share/closed/file":    {"secret\n", 0o644},
		"opt/thing/file":           {"x\n", 0o644},
		"var/lib/dpkg/status":      {"Package: tool\n", 0o644},
		"var/lib/dpkg/info/a.list": {"/.\n/usr/bin/tool\n/var/lib/tool\n/var/lib/tool/file\n/var/../root\n", 0o644},
		"var/lib/dpkg/lock":        {"", 0o640},
		"var/lib/tool/file":        {"secret\n", 0o644},
		"var/lib/mysql/table":      {"secret\n", 0o644},
		"root/file":                {"secret\n", 0o644},
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, file.mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, closed := range []string{"etc/ssl/private", "usr/share/closed"} {
		if err := os.Chmod(filepath.Join(root, closed), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/bin", filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../shadow", filepath.Join(root, "etc/apt/link")); err != nil {
		t.Fatal(err)
	}
	return root
}

// The parts of /etc and of the packages' records that every user can read are
// copied, of system directories only the directories, and nothing else of the
// host.
func TestFoundation(t *testing.T) {
	t.Parallel()
	store := userland.Store{Dir: filepath.Join(t.TempDir(), "userlands"), Root: host(t)}
	dir, err := store.Foundation(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var files, systems []string
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case !entry.IsDir():
			files = append(files, name)
			content, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(content), "secret") {
				t.Errorf("%s holds a secret", name)
			}
		case strings.HasPrefix(name, "usr") || strings.HasPrefix(name, "opt") || strings.HasPrefix(name, "var/lib/") && !strings.HasPrefix(name, "var/lib/apt"):
			systems = append(systems, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles := []string{
		"etc/apt/link", "etc/apt/sources.list", "etc/group", "etc/gshadow", "etc/passwd", "etc/shadow",
		"var/lib/dpkg/info/a.list", "var/lib/dpkg/status", "var/lock", "var/run",
	}
	wantSystems := []string{
		"opt", "opt/thing", "usr", "usr/bin", "usr/share", "var/lib/dpkg", "var/lib/dpkg/info", "var/lib/misc", "var/lib/tool",
	}
	if diff := cmp.Diff(wantFiles, files) + cmp.Diff(wantSystems, systems); diff != "" {
		t.Errorf("the foundation (- want, + got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/shadow": "root:*:19000:0:99999:7:::\n", "etc/group": "root:x:0:\nadm:x:4:\n", "etc/gshadow": "root:*::\nadm:*::\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// A foundation is made once for each state of the host's packages.
func TestFoundationIsKept(t *testing.T) {
	t.Parallel()
	store := userland.Store{Dir: filepath.Join(t.TempDir(), "userlands"), Root: host(t)}
	made := func() string {
		dir, err := store.Foundation(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first := made()
	mark := filepath.Join(first, "mark")
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := made(); again != first {
		t.Errorf("the same packages have %q and %q", first, again)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error("it was made anew")
	}
	if err := os.WriteFile(filepath.Join(store.Root, "var/lib/dpkg/status"), []byte("Package: other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if other := made(); other == first {
		t.Error("other packages have the same")
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error("what sandboxes stand on is gone")
	}
}

func TestNoFoundation(t *testing.T) {
	t.Parallel()
	_, err := userland.Store{Dir: t.TempDir(), Root: t.TempDir()}.Foundation(context.Background())
	if fault.KindOf(err) != fault.Unsupported || fault.HintOf(err) == "" {
		t.Errorf("a host without apt: %v", err)
	}
}
