package branch

import (
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"strings"
	"testing"
)

func someDelta() *delta {
	d := newDelta(strings.Repeat("1", 40))
	d.last, d.lastTree, d.inner, d.shared = strings.Repeat("2", 40), strings.Repeat("3", 40), "", true
	d.files["a/\xff\n"] = file{mode: modeFile, oid: strings.Repeat("\x01", 20), size: 1 << 40, mtime: -5, ctime: 1 << 60, ino: 7, hollow: 1 << 39}
	d.files["b"] = file{mode: modeLink, oid: strings.Repeat("\x02", 20)}
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

// A file of the first version, which did not say what is hollow, is still read.
func TestDeltaOfTheFirstVersion(t *testing.T) {
	want := newDelta(strings.Repeat("1", 40))
	want.files["b"] = file{mode: modeFile, oid: strings.Repeat("\x02", 20), size: 5, mtime: 6, ctime: 7, ino: 8}
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
			for _, line := range []string{c.Author.line(), c.Committer.line()} {
				if strings.ContainsAny(line, "\n\x00") {
					t.Fatalf("%q would break the stream", line)
				}
			}
		}
	})
}

func FuzzParseRaw(f *testing.F) {
	f.Add([]byte(":100644 100644 a b M\x00path\x00"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseRaw(b) })
}

func FuzzPathCheck(f *testing.F) {
	f.Add([]byte("a b\n:100644 100755 a b M\x00path\x00"), 3)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole, parts := &pathCheck{stop: func() {}}, &pathCheck{stop: func() {}}
		_, _ = whole.Write(b)
		for len(b) > 0 {
			n := min(max(cut%7, 1), len(b))
			_, _ = parts.Write(b[:n])
			b = b[n:]
		}
		if (whole.err == nil) != (parts.err == nil) {
			t.Fatalf("whole: %v, in parts: %v", whole.err, parts.err)
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
		if got := badPath(path, modeFile) != ""; got != bad {
			t.Errorf("%q: %q", path, badPath(path, modeFile))
		}
	}
	for _, path := range []string{".gitmodules", ".GitModules", "gitmod~1", ".gitmodules ", ".gitmod\u200cules"} {
		if badPath(path, modeLink) == "" {
			t.Errorf("%q may be a link", path)
		}
	}
}

// git reads back exactly the bytes that were quoted.
func TestQuotePath(t *testing.T) {
	for in, want := range map[string]string{
		"a": `"a"`, "a b": `"a b"`, `a"\`: `"a\"\\"`, "a\nb\t\xff": `"a\012b\011\377"`, "é": `"\303\251"`,
	} {
		if got := quotePath(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
