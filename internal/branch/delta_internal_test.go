package branch

import (
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

func someDelta() *delta {
	d := newDelta(strings.Repeat("1", 40))
	d.last, d.lastTree, d.inner, d.shared = strings.Repeat("2", 40), strings.Repeat("3", 40), "", true
	d.files["a/\xff\n"] = layer.File{Mode: git.ModeFile, Oid: strings.Repeat("\x01", 20), Size: 1 << 40, Mtime: -5, Ctime: 1 << 60, Ino: 7, Hollow: 1 << 39}
	d.files["b"] = layer.File{Mode: git.ModeLink, Oid: strings.Repeat("\x02", 20)}
	d.gone["c/d"] = struct{}{}
	d.released["e"] = struct{}{}
	return d
}

func TestDeltaSurvivesTheDisk(t *testing.T) {
	want := someDelta()
	got, err := decodeDelta(want.encode())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v; want %+v", got, err, want)
	}
}

// A file of the first version, which did not record hollow bytes, is still read.
func TestDeltaOfTheFirstVersion(t *testing.T) {
	want := newDelta(strings.Repeat("1", 40))
	want.files["b"] = layer.File{Mode: git.ModeFile, Oid: strings.Repeat("\x02", 20), Size: 5, Mtime: 6, Ctime: 7, Ino: 8}
	b := want.encode()
	// Of the three zeros before the checksum the first says that nothing is hollow.
	b = append([]byte(deltaMagic1), b[len(deltaMagic):len(b)-4-3]...)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	got, err := decodeDelta(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v; want %+v", got, err, want)
	}
}

// Any torn or flipped byte is noticed: a wrong cache would commit wrong content.
func TestDeltaNoticesDamage(t *testing.T) {
	good := someDelta().encode()
	for i := range good {
		if _, err := decodeDelta(good[:i]); err == nil {
			t.Fatalf("cut at %d", i)
		}
		bad := append([]byte{}, good...)
		bad[i] ^= 0x10
		if _, err := decodeDelta(bad); err == nil {
			t.Fatalf("flipped at %d", i)
		}
	}
}

func FuzzDecodeDelta(f *testing.F) {
	f.Add(someDelta().encode())
	f.Add([]byte(deltaMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeDelta(b)
		if err != nil {
			return
		}
		again, err := decodeDelta(d.encode())
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Fatalf("%+v became %+v, %v", d, again, err)
		}
	})
}

func FuzzParseCommits(f *testing.F) {
	oid := strings.Repeat("a", 40)
	f.Add([]byte(oid+" commit 60\ntree "+oid+"\nauthor A <a> 1 +0000\n\nm\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		commits, err := parseCommits(b, n%16)
		if err != nil {
			return
		}
		for _, c := range commits {
			for _, line := range []string{c.Author.Line(), c.Committer.Line()} {
				if strings.ContainsAny(line, "\n\x00") {
					t.Fatalf("%q would break the stream", line)
				}
			}
		}
	})
}

func TestBadPath(t *testing.T) {
	for path, bad := range map[string]bool{
		"a": false, "a/b": false, ".gitignore": false, ".github/x": false, "git": false, "...": false, ".git2": false, "git~2": false,
		"a:b": false, `a\b`: false, "-x": false, " ": false, "\xff": false, ".gitmodules": false,
		"": true, "/a": true, "a/": true, "a//b": true, ".": true, "..": true, "a/../b": true, "./a": true,
		".git": true, ".GIT": true, "a/.git/b": true, ".git ": true, ".git.": true, ".git . .": true, ".git::$INDEX_ALLOCATION": true,
		"git~1": true, "GIT~1": true, "git~1.": true, `a\.git`: true, `.git\x`: true, ".g\u200cit": true, "\ufeff.git": true,
		".\u206aGiT": true, "a\x00b": true, strings.Repeat("a", 5000): true,
	} {
		if got := git.BadPath(path, git.ModeFile) != ""; got != bad {
			t.Errorf("%q: %q", path, git.BadPath(path, git.ModeFile))
		}
	}
	for _, path := range []string{".gitmodules", ".GitModules", "gitmod~1", ".gitmodules ", ".gitmod\u200cules"} {
		if git.BadPath(path, git.ModeLink) == "" {
			t.Errorf("%q may be a link", path)
		}
	}
}

// git reads back exactly the bytes that were quoted.
func TestQuotePath(t *testing.T) {
	for in, want := range map[string]string{
		"a": `"a"`, "a b": `"a b"`, `a"\`: `"a\"\\"`, "a\nb\t\xff": `"a\012b\011\377"`, "é": `"\303\251"`,
	} {
		if got := git.QuotePath(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
