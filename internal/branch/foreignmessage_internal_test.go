package branch

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

func TestMessagesOfAgentsAreTamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ encoding, message, want string }{
		{"", "fix: the parser\n\nIt was wrong.\n\nSigned-off-by: A <a@x>\n", "fix: the parser\n\nIt was wrong.\n\nSigned-off-by: A <a@x>\n"},
		{"", "tab\tand \u00fcmlaut \u65e5\u672c \U0001f469\u200d\U0001f4bb\n", "tab\tand \u00fcmlaut \u65e5\u672c \U0001f469\u200d\U0001f4bb\n"},
		{"", "a\x1b[2J\x1b]0;title\ab\x7f\r\nc\rd", "a^[[2J^[]0;title^Gb^?\nc^Md"},
		{"", "8 bits: \u009b2J, \x9b2J, bidi \u202etxt.exe", "8 bits: <U+009B>2J, \ufffd2J, bidi <U+202E>txt.exe"},
		{"", "s\n\nLitterbox-Iteration: 99\nlitterbox-audit:x\n\tLITTERBOX-Sandbox \t= b\nLitterbox-made\nLitterbox: a box\n",
			"s\n\n> Litterbox-Iteration: 99\n> litterbox-audit:x\n> \tLITTERBOX-Sandbox \t= b\nLitterbox-made\nLitterbox: a box\n"},
		{"ISO-8859-1", "\xfcber\x1b\x9b", "\u00fcber^[<U+009B>"},
		{"UTF-8", "\u00fc", "\u00fc"},
		{"UTF-7", "+ABs-[2J", "+ABs-[2J"}, // no git decodes it any more
		{"unheard-of", "a\xfc", "a\ufffd"},
	} {
		object := "tree " + strings.Repeat("0", 40) + "\nauthor \x1b[1mA\x9b <a\x1b@x> 1 +0000\ncommitter C <c> 1 +0000\n"
		if test.encoding != "" {
			object += "encoding " + test.encoding + "\n"
		}
		c, err := parseCommit(strings.Repeat("1", 40), []byte(object+"\n"+test.message))
		if err != nil || string(c.Message) != test.want {
			t.Errorf("%q in %q is %q, %v; want %q", test.message, test.encoding, c.Message, err, test.want)
		}
		if !strings.HasPrefix(c.Author.Name, "^[[1mA") || c.Author.Email != "a^[@x" {
			t.Errorf("%q: the author is %+v", test.encoding, c.Author)
		}
	}
	// The body of our own commits is a command, chosen by anyone.
	got := commitMessage(redact.Secrets{}, "subject\x1b[2J", "$ echo\n\nLitterbox-Audit: forged", []Trailer{{Key: "Litterbox-Audit", Value: "real"}})
	if want := "subject^[[2J\n\n$ echo\n\n> Litterbox-Audit: forged\n\nLitterbox-Audit: real\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzForeignMessage takes any message in any encoding: the result can be
// shown, has none of our trailers, and does not change when tamed again.
func FuzzForeignMessage(f *testing.F) {
	f.Add([]byte("s\n\nLitterbox-Audit: 1\n"), "")
	f.Add([]byte("\x1b\x9b\u202e"), "latin1")
	f.Add([]byte("\xfe\xffL\x00i"), "UTF-16")
	f.Fuzz(func(t *testing.T, message []byte, encoding string) {
		c := AgentCommit{Message: message, Author: git.Signature{Name: string(message), Email: encoding}}
		c.tame(encoding)
		for _, text := range []string{string(c.Message), c.Author.Name, c.Author.Email} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\x7f\r\a\b\u009b\u202e") {
				t.Errorf("%q in %q became %q", message, encoding, text)
			}
		}
		for line := range strings.SplitSeq(string(c.Message), "\n") {
			if isOwnTrailer(line) {
				t.Errorf("%q in %q became %q", message, encoding, c.Message)
			}
		}
		if again := tameMessage(string(c.Message)); again != string(c.Message) {
			t.Errorf("%q, once more: %q", c.Message, again)
		}
	})
}
