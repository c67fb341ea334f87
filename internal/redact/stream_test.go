package redact_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// Whatever the pieces are, a stream has no value and nothing else is lost.
func TestStream(t *testing.T) {
	t.Parallel()
	secrets := redact.Secrets{Known: knownOf(t, filepath.Join(t.TempDir(), "known"), "correct horse\nbattery"), Values: []string{"the-value", "a value with words"}}
	const text = "\x1b[1mthe-value\x1b[0m and correct horse\nbattery, the-the-value\r\n\x1b[2Ja value with words\x1b[3;4Hsk-ant-api03-abcdefgh\x1b[0m correct hors\n" +
		"export API_KEY=abc \x1b[4mthe-valu"
	const want = "\x1b[1m" + gone + "\x1b[0m and " + gone + ", the-" + gone + "\r\n\x1b[2J" + gone + "\x1b[3;4H" + gone + "\x1b[0m correct hors\n" +
		"export API_KEY=" + gone + " \x1b[4mthe-valu"
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		stream := secrets.Stream(&out)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if written, err := stream.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if err := stream.Close(); err != nil || out.String() != want {
			t.Fatalf("in pieces of %d: %q, want %q (%v)", size, out.String(), want, err)
		}
	}
}

// A text without an end of a word does not grow for ever.
func TestStreamWithoutWords(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	stream := redact.Secrets{Values: []string{"the-value"}}.Stream(&out)
	for range 100 {
		if _, err := stream.Write([]byte(strings.Repeat("x", 4<<10))); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() < 300<<10 {
		t.Errorf("of 400 KiB it has written %d bytes", out.Len())
	}
	if err := stream.Close(); err != nil || out.Len() != 400<<10 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}
