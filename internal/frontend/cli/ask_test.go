package cli_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

func question() engine.Question {
	var q engine.Question
	q.Host, q.Port, q.Protocol, q.Process, q.Rule = "api.example.com", 443, "tcp", "curl\x1b[2J (7)", "api.example.com"
	return q
}

const asks = "\r\nlitterbox: curl (7) wants to reach api.example.com:443, which no rule allows\r\n" +
	"allow api.example.com [o]nce, for this [s]andbox, this [r]epository, [n]ever, [d]eny all from now on; Return refuses: "

// beforeLong is when an answer counts.
const beforeLong = 2 * time.Second

func TestAsk(t *testing.T) {
	for _, c := range []struct {
		typed string
		want  engine.Decision
		shown string // after the question, on a raw terminal
	}{
		{"o\r", engine.Once, "o\r\n"},
		{"s\r", engine.ThisSandbox, "s\r\n"},
		{"R\r", engine.ThisRepository, "R\r\n"},
		{" never \r", engine.Never, " never \r\n"},
		{"d\r", engine.NoMore, "d\r\n"},
		{"\r", engine.NotNow, "\r\n"},
		{"xo\x7f\x7fn\r", engine.Never, "xo\b \b\b \bn\r\n"},
		{"so\ro\r", engine.Once, "so\r\no, s, r, n, d or nothing? o\r\n"},
		{"o\x03", engine.NotNow, "o\r\n"},
		{"\x1b[A\x1b[1;5Bo\x1bOP\x1bxnce\r", engine.Once, "once\r\n"},
		{"\x1b", engine.NotNow, "\r\n"},
		{"", engine.NotNow, "\r\nno answer: refused\r\n"}, // for a minute
	} {
		synctest.Test(t, func(t *testing.T) {
			keys, typist := io.Pipe()
			defer typist.Close()
			go func() {
				time.Sleep(beforeLong)
				if strings.Contains(c.typed, "\x1b[") { // the bytes of one key come together
					_, _ = io.WriteString(typist, c.typed)
					return
				}
				for _, key := range []byte(c.typed) {
					_, _ = typist.Write([]byte{key})
				}
			}()
			var shown bytes.Buffer
			began := time.Now()
			got := cli.Ask(t.Context(), keys, &shown, question())
			if waited := time.Since(began); got != c.want || (waited >= time.Minute) != (c.typed == "") {
				t.Errorf("%q was taken for %q after %v", c.typed, got, waited)
			}
			if want := asks + c.shown; shown.String() != want {
				t.Errorf("%q showed %q, want %q", c.typed, shown.String(), want)
			}
		})
	}
}

// A signature can be allowed once; an answer that would make a rule is none.
func TestAskAboutASignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q engine.Question
		q.Signature = &engine.Signature{ID: 1, Purpose: `log in as "git" to code.example`, Key: "SHA256:abc", Comment: "work@laptop\x1b[2J"}
		keys, typist := io.Pipe()
		defer typist.Close()
		go func() {
			time.Sleep(beforeLong)
			_, _ = io.WriteString(typist, "s\r")
			_, _ = io.WriteString(typist, "o\r")
		}()
		var shown bytes.Buffer
		if got := cli.Ask(t.Context(), keys, &shown, q); got != engine.Once {
			t.Errorf("taken for %q", got)
		}
		want := "\r\nlitterbox: a program wants to log in as \"git\" to code.example with your key work@laptop\r\n" +
			"sign [o]nce, [d]eny all from now on; Return refuses: s\r\no, d or nothing? o\r\n"
		if shown.String() != want {
			t.Errorf("showed %q, want %q", shown.String(), want)
		}
	})
}

// Keys typed when a question appears are for the command: nothing counts before
// the keys have rested, and only then the answers are offered.
func TestAskIgnoresWhoTypesOn(t *testing.T) {
	for _, every := range []time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			keys, typist := io.Pipe()
			defer typist.Close()
			go func() {
				for range 20 {
					_, _ = io.WriteString(typist, "s\r")
					time.Sleep(every)
				}
				time.Sleep(beforeLong)
				_, _ = io.WriteString(typist, "n\r")
			}()
			var shown bytes.Buffer
			if got := cli.Ask(t.Context(), keys, &shown, question()); got != engine.Never || shown.String() != asks+"n\r\n" {
				t.Errorf("with a key every %v: %q, %q", every, got, shown.String())
			}
		})
	}
}

// On a screen of any size, the end of the host, its port and all answers are
// visible.
func TestAskOnAnyScreen(t *testing.T) {
	for _, q := range []engine.Question{question(), long()} {
		for cols := 24; cols <= 240; cols++ {
			for _, rows := range []int{3, 4, 10, 24, 60} {
				lines, prompt := cli.Layout(q, cols, rows)
				shown := strings.Join(lines, "")
				if len(lines) > max(1, rows-1) || slices.ContainsFunc(lines, func(line string) bool { return len(line) > cols }) || len(prompt) > cols {
					t.Fatalf("%d × %d: %q, %q", cols, rows, lines, prompt)
				}
				if !strings.Contains(shown, "evil.example:443") && !strings.Contains(shown, "api.example.com:443") {
					t.Fatalf("%d × %d hides the host: %q", cols, rows, lines)
				}
				for _, answer := range "osrnd" {
					if !strings.ContainsRune(prompt, answer) {
						t.Fatalf("%d × %d hides an answer: %q", cols, rows, prompt)
					}
				}
			}
		}
	}
}

// long is a question about a host whose beginning names another one.
func long() engine.Question {
	q := question()
	q.Host = strings.Repeat("github.com.", 20) + "evil.example"
	q.Rule, q.More, q.Waiting, q.Warning = q.Host, 12, 200, "many people share it"
	return q
}

// Questions that belong together are one.
func TestAskAboutMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, typist := io.Pipe()
		defer typist.Close()
		go func() {
			time.Sleep(beforeLong)
			_, _ = io.WriteString(typist, "\r")
		}()
		var shown bytes.Buffer
		got := cli.Ask(t.Context(), keys, &shown, long())
		for _, part := range []string{"12 more of its ports", "200 more questions waiting", "Return refuses all 13: "} {
			if !strings.Contains(shown.String(), part) {
				t.Errorf("%q is missing in %q", part, shown.String())
			}
		}
		if got != engine.NotNow {
			t.Errorf("Return meant %q", got)
		}
	})
}

// What the command printed before it asked is shown before the question, though
// it arrives a little later; a command that prints on and on is asked all the same.
func TestAskAfterOutput(t *testing.T) {
	for _, c := range []struct {
		what  string
		every time.Duration
		times int
		first string
	}{
		{"a line that is under way", 60 * time.Millisecond, 1, "line\r\n"},
		{"lines without end", 60 * time.Millisecond, 1000, strings.Repeat("line\r\n", 16)},
	} {
		synctest.Test(t, func(t *testing.T) {
			keys, typist := io.Pipe()
			defer typist.Close()
			go func() {
				time.Sleep(beforeLong)
				_, _ = io.WriteString(typist, "o\r")
			}()
			var shown bytes.Buffer
			asked, printed := make(chan struct{}), make(chan struct{})
			got := cli.Ask(t.Context(), keys, &shown, question(), func(output io.Writer) {
				defer close(printed)
				for range c.times {
					select {
					case <-asked:
						return
					case <-time.After(c.every):
					}
					if _, err := io.WriteString(output, "line\r\n"); err != nil {
						t.Error(err)
					}
				}
			})
			close(asked)
			<-printed
			if want := c.first + asks + "o\r\n"; got != engine.Once || !strings.HasPrefix(shown.String(), want) {
				t.Errorf("%s: %q, %q; want at first %q", c.what, got, shown.String(), want)
			}
		})
	}
}

// Keys typed before and after a question are the command's.
func TestKeyboard(t *testing.T) {
	source, typist := io.Pipe()
	k := cli.NewKeyboard(source)
	read := func() string {
		b := make([]byte, 100)
		n, err := k.Read(b)
		if err != nil {
			return err.Error()
		}
		return string(b[:n])
	}
	kind := func(text string) {
		if _, err := io.WriteString(typist, text); err != nil {
			t.Error(err)
		}
	}
	go kind("before")
	if got := read(); got != "before" {
		t.Errorf("before the question: %q", got)
	}
	typed, done := k.Question()
	kind("answer")
	if got := <-typed; string(got) != "answer" {
		t.Errorf("the answer: %q", got)
	}
	done()
	kind("after") // into the reading that the question began
	if got := read(); got != "after" {
		t.Errorf("after the question: %q", got)
	}
	_ = typist.Close()
	if got := read(); got != io.EOF.Error() {
		t.Errorf("at the end: %q", got)
	}
}

func TestScreen(t *testing.T) {
	for text, want := range map[string]bool{
		"plain": false, "\x1b[?1049h": true, "a\x1b[?47hb": true, "\x1b[?1049h...\x1b[?1049l": false, "\x1b[?1047l\x1b[?1047h": true,
	} {
		for size := 1; size <= len(text); size++ {
			if got := cli.Whole(text, size); got != want {
				t.Errorf("%q in pieces of %d: %v", text, size, got)
			}
		}
	}
}
