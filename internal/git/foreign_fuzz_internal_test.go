package git

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// judge runs git in a repository for its output.
func judge(t testing.TB, dir string, args ...string) (output string, ok bool) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(dir, ".git"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	out, err := cmd.Output()
	return string(out), err == nil
}

// fresh makes a repository with a commit of some files and returns its index.
func fresh(f *testing.F) (dir string, index []byte) {
	f.Helper()
	dir = f.TempDir()
	for _, path := range []string{"a", "dir/b", "dir/below/c"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(path), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "one"}, {"write-tree"},
	} {
		if _, ok := judge(f, dir, args...); !ok {
			f.Fatalf("git %q fails", args)
		}
	}
	index, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	if err != nil {
		f.Fatal(err)
	}
	return dir, index
}

// FuzzReadIndex reads any content of an index, under a matching checksum: an
// accepted one means the same when reassembled, and to git.
func FuzzReadIndex(f *testing.F) {
	dir, index := fresh(f)
	body := index[:len(index)-sha1.Size]
	f.Add(body)
	f.Add(body[:IndexHeader])
	f.Add(append(slices.Clone(body), "TREE\x00\x00\x00\x05short"...))
	f.Add(append(slices.Clone(body), "TREE\xff\xff\xff\xff"...))
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x00"))
	path := filepath.Join(f.TempDir(), "index")
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := WriteIndex(path, "sha1", body, Owner{}); err != nil {
			t.Fatal(err)
		}
		x, err := ReadIndex(path, "sha1")
		if err != nil {
			return
		}
		if err := WriteIndex(path, "sha1", x.Body("sha1"), Owner{}); err != nil {
			t.Fatal(err)
		}
		again, err := ReadIndex(path, "sha1")
		if err != nil || !slices.Equal(again.Paths, x.Paths) || !slices.EqualFunc(again.Entries, x.Entries, bytes.Equal) || !bytes.Equal(again.cached, x.cached) {
			t.Fatalf("%+v became %+v, %v", x, again, err)
		}
		if slices.ContainsFunc(x.Paths, func(path string) bool { return BadPath(path, ModeFile) != "" }) {
			return // git lists what it would never write in ways of its own
		}
		t.Setenv("GIT_INDEX_FILE", path)
		if listed, ok := judge(t, dir, "ls-files", "-z"); ok {
			if want := strings.Join(append(x.Paths, ""), "\x00"); listed != want {
				t.Errorf("git lists %q, we have %q", listed, want)
			}
		}
	})
}

// FuzzReadHead puts anything into HEAD, the branch and packed-refs: reading
// without git gives what git reads.
func FuzzReadHead(f *testing.F) {
	dir, _ := fresh(f)
	head, _ := judge(f, dir, "rev-parse", "HEAD")
	oid := strings.TrimSpace(head)
	f.Add("ref: refs/heads/main\n", oid+"\n", "")
	f.Add("ref: refs/heads/main", "", "# pack-refs with: peeled fully-peeled sorted \n"+oid+" refs/heads/main\n")
	f.Add("ref: refs/heads/main\n", "", oid+" refs/heads/main2\n"+oid+" refs/heads/main\n")
	f.Add("ref: refs/heads/main\n", "", "x"+oid+" refs/heads/main\n")
	f.Add("ref: refs/heads/main\n", "ref: refs/heads/other\n", "")
	f.Add("ref: refs/heads/../../HEAD\n", "", "")
	f.Add(oid+"\n", "", "")
	f.Add(oid[:39]+"\n", "", "")
	f.Add("ref:refs/heads/main\n\n", oid+" # \n", "^"+oid+"\n")
	r := &Repository{Location: Location{GitDir: filepath.Join(dir, ".git"), CommonDir: filepath.Join(dir, ".git")}, ObjectFormat: "sha1"}
	f.Fuzz(func(t *testing.T, head, loose, packed string) {
		for path, content := range map[string]string{"HEAD": head, "refs/heads/main": loose, "packed-refs": packed} {
			path = filepath.Join(r.GitDir, path)
			_ = os.Remove(path) // it may not be there
			if content == "" {
				continue
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, ref := r.readHead()
		if got == "" {
			return // git is asked
		}
		want, ok := judge(t, dir, "rev-parse", "-q", "--verify", "HEAD")
		if !ok {
			return // git refuses damage elsewhere; the commit is looked up next
		}
		symbolic, _ := judge(t, dir, "symbolic-ref", "-q", "HEAD")
		if got != strings.TrimSpace(want) || ref != strings.TrimSpace(symbolic) {
			t.Errorf("HEAD %q, main %q, packed %q: %s on %q, git says %s on %q", head, loose, packed, got, ref, want, symbolic)
		}
	})
}

// FuzzTrailers reads git's output about commits that an agent wrote.
func FuzzTrailers(f *testing.F) {
	oid := strings.Repeat("a", 40)
	commit := "tree " + oid + "\nauthor A <a> 1 +0000\n\nsubject\n\nKey: value\n"
	f.Add([]byte(oid+" commit 5\nabcde\n"), commit)
	f.Add([]byte(oid+" missing\n"+oid+" blob 0\n\n"), commit+"Key:  other \nKey")
	f.Add([]byte(oid+" commit -1\n"), "Key: x")
	f.Add([]byte(oid+" commit 99999999999999\n"), "Key: x\n\nnot the last\n")
	f.Fuzz(func(t *testing.T, printed []byte, commit string) {
		values := map[string]string{}
		_ = readTrailers(bufio.NewReader(bytes.NewReader(printed)), "Key", values) // that it ends is enough
		if value := lastTrailer(commit, "Key"); value != "" {
			if strings.ContainsAny(value, "\n") || !strings.Contains(commit, "Key: ") {
				t.Errorf("%q has the trailer %q", commit, value)
			}
			paragraphs := strings.Split(strings.TrimRight(commit, "\n"), "\n\n")
			if !strings.Contains(paragraphs[len(paragraphs)-1], value) {
				t.Errorf("%q has the trailer %q before its last paragraph", commit, value)
			}
		}
	})
}

func FuzzParseRaw(f *testing.F) {
	f.Add([]byte(":100644 100644 a b M\x00path\x00"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = ParseRaw(b) })
}

func FuzzPathCheck(f *testing.F) {
	f.Add([]byte("a b\n:100644 100755 a b M\x00path\x00"), 3)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole, parts := &PathCheck{Stop: func() {}}, &PathCheck{Stop: func() {}}
		_, _ = whole.Write(b)
		for len(b) > 0 {
			n := min(max(cut%7, 1), len(b))
			_, _ = parts.Write(b[:n])
			b = b[n:]
		}
		if (whole.Err == nil) != (parts.Err == nil) {
			t.Fatalf("whole: %v, in parts: %v", whole.Err, parts.Err)
		}
	})
}
