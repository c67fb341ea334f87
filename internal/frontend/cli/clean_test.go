package cli_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Fix the login", "Fix the login"},
		{"other scripts", "日本語 עברית naïve 👩\u200d💻", "日本語 עברית naïve 👩\u200d💻"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"title, BEL", "a\x1b]0;owned\x07b", "ab"},
		{"title, ST", "a\x1b]2;owned\x1b\\b", "ab"},
		{"hyperlink", "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "here"},
		{"clipboard", "\x1b]52;c;ZXZpbA==\x07", ""},
		{"device query", "\x1b[6n\x1b[c\x1bP$qm\x1b\\", ""},
		{"cursor up and erase", "ok\x1b[1A\x1b[2Kfake", "okfake"},
		{"charset", "\x1b(0lqqk\x1b(B", "lqqk"},
		{"reset", "\x1bcgone", "gone"},
		{"C1 as runes", "a\u009b31mb\u009d0;x\u009cc\u0090q\u009cd", "abcd"},
		{"C1 as a raw byte", "a\x9b31m", "a\ufffd31m"},
		{"BEL, BS, DEL", "a\a\b\x7fb", "ab"},
		{"one line", "a\r\nb\tc\vd\u2028e\u0085f", "a  b c d e f"},
		{"bidi override", "if (\u202e txet\u202c) \u2066x\u2069\u200f", "if ( txet) x"},
		{"invisible", "pass\u200bword\ufeff\U000e0041", "password"},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
		{"unfinished title hides nothing", "\x1b]0;rest of the line", "]0;rest of the line"},
		{"title over a line break", "\x1b]0;x\nsecond\x07", "]0;x second"},
		{"unfinished CSI", "\x1b[31", "[31"},
		{"nested introducer", "\x1b\x1b[0m[31mx", "[31mx"},
		{"lonely escape", "end\x1b", "end"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cli.Clean(c.in); got != c.want {
				t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestCleanTextKeepsLines(t *testing.T) {
	if got, want := cli.CleanText("one\x1b[0m\r\n\ttwo\n\n"), "one\n two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"\x1b]0;a\x07b", "\x1b[31m", "\u009b1m", "\xff\xfe", "\x1b\x1b]\x07[m", "\u202e", "a\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := cli.Clean(in)
		if !utf8.ValidString(out) {
			t.Fatalf("Clean(%q) = %q is not UTF-8", in, out)
		}
		if i := strings.IndexFunc(out, cli.UnsafeRune); i >= 0 {
			t.Fatalf("Clean(%q) = %q keeps %q", in, out, out[i:])
		}
		if again := cli.Clean(out); again != out {
			t.Fatalf("Clean(%q) = %q, and once more %q", in, out, again)
		}
	})
}
