package attribute_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
)

func wide(s string, unit int, big, mark bool) []byte {
	var b []byte
	if mark {
		s = "\ufeff" + s
	}
	put := func(v uint32, n int) {
		for i := range n {
			shift := 8 * i
			if big {
				shift = 8 * (n - 1 - i)
			}
			b = append(b, byte(v>>shift))
		}
	}
	for _, r := range s {
		if unit == 4 {
			put(uint32(r), 4)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			put(uint32(u), 2)
		}
	}
	return b
}

// TestEncodingsAsGit compares with git hash-object, which fails where git
// refuses a file.
func TestEncodingsAsGit(t *testing.T) {
	type sample struct {
		encoding string
		content  []byte
	}
	var samples []sample
	texts := []string{"", "a", "äöü\r\n", "a\x00b", "\ufeff", "€𝄞\n", "\uffff\U0010ffff", "$Id: x$\n"}
	for _, name := range []string{"UTF-16", "utf16", "UTF-16LE", "UTF16LE", "UTF-16BE", "UTF-16LE-BOM", "utf-16le-bom", "UTF-16BE-BOM", "UTF-32", "UTF32", "UTF-32LE", "UTF-32BE", "UTF-32LE-BOM", "UTF-16-LE", "UTF--16", "UTF-17", "UTF"} {
		unit := 2
		if strings.Contains(name, "32") {
			unit = 4
		}
		for _, text := range texts {
			for i := range 4 {
				samples = append(samples, sample{name, wide(text, unit, i&1 != 0, i&2 != 0)})
			}
		}
		for _, broken := range []string{"a", "a\x00b", "\x00\xd8", "\x00\xdc", "\x00\xd8a\x00", "\xff\xfe\x00\xd8", "\xff\xfea", "\xfe\xff\xdc\x00\x00a", "\xff\xfe\x00\x00\x00\xd8\x00\x00", "\xff\xfe\x00\x00\x00\x00\x11\x00", "\x00\x00\xfe\xff\x00\x10\xff\xff"} {
			samples = append(samples, sample{name, []byte(broken)})
		}
	}
	for _, name := range []string{"ASCII", "us-ascii", "ISO-8859-1", "latin1", "ISO8859-15", "windows-1252", "nonsense", "UTF-8", "utf8", "cp1252"} {
		for _, content := range []string{"", "abc\r\n", "\xe4\xa4\x80", "ä", "\x81"} {
			samples = append(samples, sample{name, []byte(content)})
		}
	}

	// Accepted files go to one git add, which fails if git accepts less;
	// refused ones each go to a git of their own.
	repo := newRepository(t)
	var lines, add bytes.Buffer
	seen := map[string]bool{}
	want := map[string][]byte{}
	var refused []int
	for i, s := range samples {
		key := s.encoding + "\x00" + string(s.content)
		if seen[key] {
			continue
		}
		seen[key] = true
		a := attribute.Attributes{WorkingTreeEncoding: s.encoding, Text: attribute.TextSet, Ident: true}
		path := fmt.Sprintf("f%d", i)
		fmt.Fprintf(&lines, "/%s%s\n", path, words(a))
		got, err := attribute.ToGit(s.content, a, attribute.Settings{}, nil)
		if err == nil {
			want[path] = got
			repo.write(t, path, s.content)
			fmt.Fprintf(&add, "%s\x00", path)
			continue
		}
		refused = append(refused, i)
		if !bytes.Equal(got, s.content) {
			t.Errorf("%s, %q: content changed to %q beside an error", s.encoding, s.content, got)
		}
	}
	repo.write(t, ".git/info/attributes", lines.Bytes())
	repo.git(t, add.Bytes(), "add", "--pathspec-from-file=-", "--pathspec-file-nul")
	index := repo.index(t)
	for path, got := range want {
		if blobID(got) != index[path] {
			t.Errorf("%s: got %q, git's blob is %s", path, got, index[path])
		}
	}
	for _, i := range refused {
		if _, code := repo.run(t, samples[i].content, "hash-object", "-w", "--stdin", fmt.Sprintf("--path=f%d", i)); code == 0 {
			t.Errorf("%s, %q: refused, and git accepts it", samples[i].encoding, samples[i].content)
		}
	}
	if len(want) < 100 || len(refused) < 100 {
		t.Errorf("%d accepted and %d refused: the samples test nothing", len(want), len(refused))
	}
}

// TestCharsetsAsGit sends every character that a table has, in both directions.
func TestCharsetsAsGit(t *testing.T) {
	names := []string{
		"ASCII", "US-ASCII", "LATIN1", "L1", "LATIN2", "L2", "LATIN-9", "KOI8-R", "IBM437", "CP437", "CP850", "CP852", "CP855", "CP860", "CP862", "CP863", "CP865", "IBM866", "CP866",
		"CP874", "WINDOWS-874", "windows-1250", "CP1251", "CP1252", "WINDOWS-1253", "CP1254", "CP1256", "CP1257", "ISO8859-2", "ISO_8859-15", "CP932", "GBK", "CP936", "UHC", "CP949",
	}
	for _, part := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16} {
		names = append(names, fmt.Sprintf("ISO-8859-%d", part))
	}
	// Common words of East Asian text; x/text has more characters than glibc
	// at the edges of these tables, where git refuses the file.
	eastAsian := map[string]string{
		"CP932": "日本語テスト ｶﾀｶﾅ ①～", "GBK": "简体中文測試，。①", "CP936": "简体中文測試", "UHC": "한국어 똠방각하 뷁", "CP949": "한국어 漢字",
	}
	repo := newRepository(t)
	var lines, add bytes.Buffer
	want := map[string][]byte{}
	nameOf := map[string]string{}
	for i, name := range names {
		a := attribute.Attributes{WorkingTreeEncoding: name}
		var file, text []byte
		if sample := eastAsian[name]; sample != "" {
			var err error
			if file, err = attribute.ToWorkTree([]byte(sample), a, attribute.Settings{}, ""); err != nil {
				t.Fatal(err)
			}
			text = []byte(sample)
		} else {
			for c := range 256 {
				if got, err := attribute.ToGit([]byte{byte(c)}, a, attribute.Settings{}, nil); err == nil {
					file = append(file, byte(c))
					text = append(text, got...)
				}
			}
			back, err := attribute.ToWorkTree(text, a, attribute.Settings{}, "")
			if err != nil || !bytes.Equal(back, file) {
				t.Errorf("%s: %q comes back as %q: %v", name, file, back, err)
			}
		}
		if len(file) == 0 || !utf8.Valid(text) {
			t.Errorf("%s is not known", name)
		}
		path := fmt.Sprintf("f%d", i)
		want[path], nameOf[path] = text, name
		repo.write(t, path, file)
		fmt.Fprintf(&lines, "/%s working-tree-encoding=%s\n", path, name)
		fmt.Fprintf(&add, "%s\x00", path)
	}
	repo.write(t, ".git/info/attributes", lines.Bytes())
	repo.git(t, add.Bytes(), "add", "--pathspec-from-file=-", "--pathspec-file-nul")
	for path, id := range repo.index(t) {
		if blobID(want[path]) != id {
			t.Errorf("%s: git has another text than %q:\n%s", nameOf[path], want[path], cmp.Diff(string(repo.git(t, nil, "cat-file", "blob", id)), string(want[path])))
		}
	}
}

func TestEncodingErrors(t *testing.T) {
	got := map[string]fault.Kind{}
	for _, s := range [][2]string{{"Shift_JIS", "a"}, {"true", "a"}, {"UTF-16BE-BOM", "ab"}, {"UTF-16", "ab"}, {"UTF-16LE", "\xff\xfe"}, {"ASCII", "ä"}, {"CP932", "\xff"}} {
		_, err := attribute.ToGit([]byte(s[1]), attribute.Attributes{WorkingTreeEncoding: s[0]}, attribute.Settings{}, nil)
		got[s[0]] = fault.KindOf(err)
	}
	want := map[string]fault.Kind{
		"Shift_JIS": fault.Unsupported, "true": fault.Unsupported, "UTF-16BE-BOM": fault.Unsupported,
		"UTF-16": fault.Invalid, "UTF-16LE": fault.Invalid, "ASCII": fault.Invalid, "CP932": fault.Invalid,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
