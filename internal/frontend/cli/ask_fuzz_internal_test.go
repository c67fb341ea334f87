package cli

import (
	"strings"
	"testing"
)

// FuzzKeys lets anything come from the terminal while a question is open, in one
// piece or in two: it means the same, and only text that was typed is an answer.
func FuzzKeys(f *testing.F) {
	for _, keys := range []string{
		"o\r", "once\n", "x\x7fs\r", "\x1b[A\x1b[1;5Bo\x1bOP\x1bxnce\r", "\x1b", "\x03", "abc\x04", "\x1b\x1b", "\x1b[\rs\r", "\x1bO\r",
		"\x1b[200~r\r\x1b[201~", "\x1b[24;80R\x1b[?62;22c\r", "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\n\r", "\x1b]lo\x07\r", "\x1bP1$r0m\x1b\\\r",
		"\x1b_Gi=31;OK\x1b\\s\r", "\x1b]never ends", "\x1b]s\r", "\x1b[<0;10;20Mo\r", "\xc3\xb6\r", strings.Repeat("o", 40) + "\r",
	} {
		for _, at := range []uint{1, 2, 5} {
			f.Add([]byte(keys), at)
		}
	}
	type typed struct {
		echo, text string
		complete   bool
	}
	f.Fuzz(func(t *testing.T, keys []byte, at uint) {
		enter := func(pieces ...[]byte) (all typed) {
			var line answerLine
			for _, piece := range pieces {
				echo, complete := line.enter(piece)
				all.echo += echo
				if complete {
					all.complete = true
					break
				}
			}
			all.text = line.take()
			return all
		}
		once := enter(keys)
		shown := strings.ReplaceAll(strings.ReplaceAll(once.echo, "\b \b", ""), "\r\n", "")
		if strings.ContainsFunc(once.text+shown, func(r rune) bool { return r < ' ' || r >= 0x7f }) || len(once.text) > 32 {
			t.Errorf("%q is %+v", keys, once)
		}
		if replied := enter([]byte("\x1b]" + string(once.text) + "\x1b\\" + "\x1bP" + string(once.text) + "\x07")); replied != (typed{}) {
			t.Errorf("what the terminal says counts as typed: %+v", replied)
		}
		// Escape alone is a key: it ends the line, and what follows is another.
		if at %= uint(len(keys) + 1); at > 0 && keys[at-1] == 0x1b {
			return
		}
		if twice := enter(keys[:at], keys[at:]); twice != once {
			t.Errorf("%q is %+v, but in two pieces, %q and %q, %+v", keys, once, keys[:at], keys[at:], twice)
		}
	})
}

// FuzzScreen lets a command print anything, in one piece or in two: the known
// state of the screen is the same.
func FuzzScreen(f *testing.F) {
	for _, output := range []string{"plain", "\x1b[?1049h", "a\x1b[?47hb", "\x1b[?1049h...\x1b[?1049l", "\x1b[?1047l\x1b[?1047h", "\x1b[?\x1b[?47h47l"} {
		for _, at := range []uint{1, 4, 7} {
			f.Add([]byte(output), at)
		}
	}
	f.Fuzz(func(t *testing.T, output []byte, at uint) {
		at %= uint(len(output) + 1)
		var once, twice screen
		once.watch(output)
		twice.watch(output[:at])
		twice.watch(output[at:])
		if once.whole != twice.whole {
			t.Errorf("%q and %q: %t, in one piece %t", output[:at], output[at:], twice.whole, once.whole)
		}
	})
}
