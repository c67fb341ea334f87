package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/local"
	"golang.org/x/sys/unix"
)

const someOid = "0123456789abcdef0123456789abcdef01234567"

// An agent can put anything where its refs belong: nothing waits for it, and
// nothing outside the upper directory is read.
func TestRefsOfAHostileSandbox(t *testing.T) {
	upper, outside := filepath.Join(t.TempDir(), "upper"), t.TempDir()
	for path, content := range map[string]string{
		filepath.Join(outside, "secret"):             someOid + "\n",
		filepath.Join(upper, ".git/refs/heads/a/b"):  someOid + "\n",
		filepath.Join(upper, ".git/refs/heads/bad"):  strings.Repeat("x", 1<<20),
		filepath.Join(upper, ".git/refs/heads/main"): "ref: refs/heads/a/b\n",
		filepath.Join(upper, ".git/packed-refs"):     "# header\n" + someOid + " refs/heads/packed\n^" + someOid + "\n" + someOid + " refs/tags/v1\n\n" + someOid,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(upper, ".git/refs/stash"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": filepath.Join(outside, "secret"), "dir": outside, "up": "../../.."} {
		if err := os.Symlink(target, filepath.Join(upper, ".git/refs/heads", name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := local.Files{Dir: filepath.Dir(upper)}.Refs(t.Context())
	if diff := cmp.Diff(map[string]string{"refs/heads/a/b": someOid, "refs/heads/packed": someOid}, got); diff != "" || err != nil {
		t.Fatalf("%s%v", diff, err)
	}
}

// FuzzRefs puts anything into a ref and into packed-refs inside: every result
// has the form of a branch or the stash at a commit.
func FuzzRefs(f *testing.F) {
	f.Add(someOid+"\n", "# pack-refs with: peeled fully-peeled sorted \n"+someOid+" refs/heads/main\n")
	f.Add("ref: refs/heads/main\n", someOid+" refs/stash\n^"+someOid+"\n")
	f.Add("", someOid+" refs/heads/a b\x00\n"+someOid+"refs/heads/x\n")
	upper := filepath.Join(f.TempDir(), "upper")
	if err := os.MkdirAll(filepath.Join(upper, ".git/refs/heads"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, loose, packed string) {
		for path, content := range map[string]string{"refs/heads/main": loose, "packed-refs": packed} {
			if err := os.WriteFile(filepath.Join(upper, ".git", path), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		found, err := local.Files{Dir: filepath.Dir(upper)}.Refs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, oid := range found {
			if !git.IsOid(oid) || !strings.HasPrefix(name, git.Heads) && name != "refs/stash" {
				t.Fatalf("%q at %q", name, oid)
			}
		}
		if oid := strings.TrimSuffix(loose, "\n"); git.IsOid(oid) && found["refs/heads/main"] != oid {
			t.Fatalf("main is at %q, not %q", found["refs/heads/main"], oid)
		}
	})
}
