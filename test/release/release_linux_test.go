// Package release tests the results of `make release`: the same commit gives
// the same bytes, and its packages install, run and uninstall without a trace
// in a root file system with nothing else of litterbox. It runs by itself,
// with `make test-release`.
package release

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// enter makes a directory the root of a mount and pid namespace, as a container
// would: user namespaces are not possible in a mere chroot (user_namespaces(7)).
const enter = `set -e
mount --make-rprivate /
mount --rbind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmp tmp
pivot_root . .
umount -l .
exec /bin/sh -ec "$2"
`

// Tried as an ordinary user of that root: the version, a manual page, a
// completion, and two sandboxes.
const try = `
id tester || useradd -m tester
litterbox version
zcat /usr/share/man/man1/litterbox-create.1.gz | grep -q 'Make a sandbox'
bash -c '. /usr/share/bash-completion/completions/litterbox && complete -p litterbox'
su tester -c 'cd && git config --global user.name T && git config --global user.email t@example.com && litterbox demo'
`

func TestRelease(t *testing.T) {
	if os.Getenv("LITTERBOX_TEST_RELEASE") == "" {
		t.Skip("make test-release sets LITTERBOX_TEST_RELEASE")
	}
	if os.Getuid() != 0 {
		t.Skip("root file systems are entered by root")
	}
	for _, tool := range []string{"mmdebstrap", "rpm", "unshare", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is missing: apt-get install mmdebstrap rpm util-linux coreutils", tool)
		}
	}
	scratch := t.TempDir()
	if err := os.Chmod(scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(scratch, "first"), filepath.Join(scratch, "second")
	maker := filepath.Join(scratch, "litterbox-release")
	run(t, "../..", "go", "build", "-o", maker, "./cmd/litterbox-release")
	run(t, "../..", maker, "-o", first)
	run(t, "../..", maker, "-o", second)

	sums := read(t, filepath.Join(first, "SHA256SUMS"))
	if again := read(t, filepath.Join(second, "SHA256SUMS")); again != sums {
		t.Errorf("two releases of one commit differ:\n%s\n%s", sums, again)
	}
	run(t, first, "sha256sum", "--check", "--strict", "SHA256SUMS")

	root := filepath.Join(scratch, "root")
	run(t, scratch, "mmdebstrap", "--quiet", "--variant=minbase", "--include=git,ca-certificates,bash", "bookworm", root)
	before := tree(t, root)
	// The processor's name in the names of packages.
	names := map[string]string{"deb": runtime.GOARCH, "rpm": map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]}
	if err := os.Mkdir(filepath.Join(root, "packages"), 0o755); err != nil {
		t.Fatal(err)
	}
	for kind, arch := range names {
		t.Run(kind, func(t *testing.T) {
			found, err := filepath.Glob(filepath.Join(first, "*"+arch+"."+kind))
			if err != nil || len(found) != 1 {
				t.Fatalf("the release holds %d packages %s for %s: %v", len(found), kind, arch, err)
			}
			if kind == "rpm" {
				// RPM's database is outside the root, which is Debian's.
				database := filepath.Join(t.TempDir(), "rpm")
				rpm := func(arguments ...string) {
					run(t, scratch, "rpm", append([]string{"--root", root, "--dbpath", database, "--nodeps", "--noscripts"}, arguments...)...)
				}
				rpm("--install", found[0])
				inside(t, root, try)
				rpm("--erase", "litterbox")
			} else {
				copied := filepath.Join(root, "packages", "litterbox.deb")
				if err := os.WriteFile(copied, []byte(read(t, found[0])), 0o644); err != nil {
					t.Fatal(err)
				}
				inside(t, root, "dpkg -i /packages/*.deb")
				inside(t, root, try)
				inside(t, root, "dpkg --purge litterbox")
			}
			if _, err := os.Lstat(filepath.Join(root, "usr/bin/litterbox")); err == nil {
				t.Error("the program is left")
			}
			for path := range tree(t, root) {
				if !before[path] && strings.Contains(path, "litterbox") && !strings.HasPrefix(path, "packages/") {
					t.Errorf("left: %s", path)
				}
			}
		})
	}
}

// tree names the files below the directories where packages install.
func tree(t *testing.T, root string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, top := range []string{"usr", "etc", "opt", "var/lib/dpkg/info"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ os.DirEntry, err error) error {
			if err == nil {
				path, err = filepath.Rel(root, path)
				found[path] = true
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return found
}

// inside runs a shell's text with root as its root directory.
func inside(t *testing.T, root, text string) {
	t.Helper()
	run(t, root, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, "sh", root, text)
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	} else {
		t.Logf("%s %s\n%s", name, strings.Join(args, " "), out)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
