package replace_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

func table(pairs ...string) *replace.Table {
	var all []replace.Pair
	for n := 0; n < len(pairs); n += 2 {
		all = append(all, replace.Pair{Old: []byte(pairs[n]), New: []byte(pairs[n+1]), ID: n / 2})
	}
	return replace.New(all)
}

// inPieces sends text through a stream in pieces of the given sizes, the last
// size again and again.
func inPieces(t *replace.Table, text string, sizes ...int) string {
	stream := t.Stream()
	var out []byte
	for n := 0; len(text) > 0; n++ {
		size := min(len(text), max(1, sizes[min(n, len(sizes)-1)]))
		out = stream.Append(out, []byte(text[:size]), false)
		text = text[size:]
	}
	return string(stream.Append(out, nil, true))
}

func TestStream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		table     *replace.Table
		in, wants string
	}{
		{table("secret", "PLACED"), "a secret, and a secret", "a PLACED, and a PLACED"},
		{table("secret", "P"), "secretsecret secre", "PP secre"},
		{table("secret", "a longer one"), "<secret><secret>", "<a longer one><a longer one>"},
		{table("secret", ""), "xsecrety", "xy"},
		{table("ab", "1", "abcd", "2"), "abc abcd ab", "1c 2 1"},
		{table("aab", "1"), "aaab", "a1"},
		{table("abc", "xab"), "abcc", "xxab"},     // a sequence made by chance is replaced too
		{table("abc", "xabcx"), "-abc-", "-***-"}, // it would never end
		{table("abc", "1", "bcd", "2"), "abcd bcd", "1d 2"},
		{&replace.Table{}, "as it is", "as it is"},
	} {
		for size := 1; size <= len(c.in)+1; size++ {
			if got := inPieces(c.table, c.in, size); got != c.wants {
				t.Errorf("%q in pieces of %d: %q, want %q", c.in, size, got, c.wants)
			}
		}
		got, changed := c.table.Text(c.in)
		if got != c.wants || changed != (c.in != c.wants) {
			t.Errorf("%q: %q (%t), want %q", c.in, got, changed, c.wants)
		}
	}
}

// Bytes that cannot begin a sequence are passed on at once.
func TestNothingIsHeldBack(t *testing.T) {
	t.Parallel()
	stream := table("secret", "PLACED").Stream()
	for piece, want := range map[string]string{"data: {}\n\n": "data: {}\n\n", "": "", "abc": "abc"} {
		if got := string(stream.Append(nil, []byte(piece), false)); got != want {
			t.Errorf("of %q came %q", piece, got)
		}
	}
	if got := string(stream.Append(nil, []byte("events"), false)); got != "event" || stream.Held() != 1 {
		t.Errorf("of a piece that may begin one came %q", got)
	}
	if got := string(stream.Append(nil, []byte("!"), false)); got != "s!" {
		t.Errorf("after it came %q", got)
	}
	long := replace.New(replace.Forms(bytes.Repeat([]byte("0123456789abcdef"), 4), bytes.Repeat([]byte("x"), 64), 0, nil)).Stream()
	if stream.Append(nil, []byte(strings.Repeat("0123456789abcdef", 3)), false); long.Held() > 64 {
		t.Errorf("%d bytes are held back", long.Held())
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("of a secret and of no secre", 5000)
	want := strings.ReplaceAll(text, "secret", "placed")
	for name, source := range map[string]io.Reader{
		"whole": strings.NewReader(text), "by bytes": iotest.OneByteReader(strings.NewReader(text)),
		"by halves": iotest.HalfReader(strings.NewReader(text)), "with the end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		got, err := io.ReadAll(table("secret", "placed").Reader(source))
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes (%v)", name, len(got), err)
		}
	}
	broken := table("secret", "placed").Reader(io.MultiReader(strings.NewReader("a secre"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if got, err := io.ReadAll(broken); err != io.ErrUnexpectedEOF || string(got) != "a " {
		t.Errorf("of a broken stream came %q (%v)", got, err)
	}
}

func TestFinder(t *testing.T) {
	t.Parallel()
	all := table("first one", "", "second", "")
	for text, want := range map[string]int{"no": -1, "the first one is": 0, "the second": 1, "second": 1, "seconfirst on": -1} {
		for size := 1; size <= len(text); size++ {
			finder, got := all.Finder(), -1
			for n := 0; n < len(text); n += size {
				for id := range finder.Next([]byte(text[n:min(len(text), n+size)])) {
					got = id
				}
			}
			if got != want {
				t.Errorf("in %q, in pieces of %d: %d, want %d", text, size, got, want)
			}
		}
	}
}

// written are the ways in which programs write a value.
func written(value string) []string {
	quoted, _ := json.Marshal(value)
	all := []string{value, url.QueryEscape(value), url.PathEscape(value), string(quoted), hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for _, around := range []string{"", "u:", "me:", "you:"} {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, encoding.EncodeToString([]byte(around+value)), encoding.EncodeToString([]byte(around+value+"@somewhere")))
		}
	}
	return all
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"sk-ant-api03-0123456789abcdefABCDEF", `with "quotes", \ and / + = & spaces`, "grüße und ähnliches ✓ 😀", "12345678"} {
		placeholder, err := secret.Placeholder([]byte(value))
		if err != nil {
			t.Fatal(err)
		}
		forms := replace.New(replace.Forms([]byte(value), []byte(placeholder), 7, nil))
		for _, text := range written(value) {
			got := inPieces(forms, "a"+text+"z", 5)
			if id, ok := forms.Find([]byte(text)); !ok || id != 7 || strings.Contains(got, text) {
				t.Errorf("%q as %q came out as %q", value, text, got)
			}
			// Nothing that an ordinary decoder makes of it has the value.
			for _, decode := range []func(string) ([]byte, error){base64.StdEncoding.DecodeString, base64.URLEncoding.DecodeString, base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString, hex.DecodeString} {
				if decoded, err := decode(inPieces(forms, text, 3)); err == nil && bytes.Contains(decoded, []byte(value)) {
					t.Errorf("%q is still in %q", value, text)
				}
			}
		}
	}
}

// FuzzStream checks, for any value, surrounding text and pieces, that no output
// has the value, that text without it comes out unchanged, and that pieces make
// no difference.
func FuzzStream(f *testing.F) {
	f.Add([]byte("sk-ant-api03-0123456789"), []byte("authorization: "), []byte("\r\n"), uint64(1))
	f.Add([]byte("aaaaaaaaaaaaaaaa"), []byte("aaaaaaaaaaaa"), []byte("aaaaaaaaaaaaaaaaa"), uint64(2))
	f.Add([]byte("abababababab"), []byte("abababa"), []byte("babab"), uint64(3))
	f.Add([]byte("12345678"), []byte("1234567"), []byte("2345678"), uint64(4))
	f.Add([]byte(`a"b\c/d+e=f&g`), []byte(`{"a":"`), []byte(`"}`), uint64(5))
	f.Fuzz(func(t *testing.T, value, before, after []byte, seed uint64) {
		made, err := secret.Placeholder(value)
		if err != nil || len(value)+len(before)+len(after) > 1000 { // held bytes are examined again with each piece
			t.Skip("no secret, or more than a run has time for")
		}
		placeholder := []byte(made)
		all := replace.New(replace.Forms(value, placeholder, 0, nil))
		random := rand.New(rand.NewPCG(seed, 1))
		text := append(append(bytes.Clone(before), value...), after...)
		for range random.IntN(4) {
			text = append(append(text, value[:random.IntN(len(value)+1)]...), after...)
			text = append(append(text, value...), before...)
		}
		once := all.Stream().Append(nil, text, true)
		if bytes.Contains(once, value) {
			t.Fatalf("%q came out as %q", text, once)
		}
		stream := all.Stream()
		var pieces []byte
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(min(len(rest), 9))
			pieces = stream.Append(pieces, rest[:n], false)
			if bytes.Contains(pieces, value) {
				t.Fatalf("%q came out as %q", text, pieces)
			}
			rest = rest[n:]
		}
		if pieces = stream.Append(pieces, nil, true); !bytes.Equal(pieces, once) {
			t.Fatalf("%q came out as %q, and in pieces as %q", text, once, pieces)
		}
		if _, found := all.Find(before); !found {
			if got := all.Stream().Append(nil, before, true); !bytes.Equal(got, before) {
				t.Fatalf("%q came out as %q", before, got)
			}
		}
		finder := all.Finder()
		found := false
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(min(len(rest), 40))
			for range finder.Next(rest[:n]) {
				found = true
			}
			rest = rest[n:]
		}
		if !found {
			t.Fatalf("the value was not found in %q", text)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	text := bytes.Repeat([]byte("data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\" some key words\"}}\n\n"), 1<<14)
	forms := replace.New(replace.Forms([]byte("sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"), bytes.Repeat([]byte("x"), 65), 0, nil))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := io.Copy(io.Discard, forms.Reader(bytes.NewReader(text))); err != nil {
			b.Fatal(err)
		}
	}
}
