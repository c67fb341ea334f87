package watch

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// seen is what a watcher shows for pieces: "out: text", "err: text", "lost: n".
func seen(pieces ...keeper.Echo) []string {
	w := &watching{request: Request{Secrets: redact.Secrets{Values: []string{"exactly-this-secret"}}}, begun: time.Now(), outputs: map[string]*watchedOutput{}}
	o := w.output(&sandbox.Sandbox{ID: "id", Name: "fix"})
	var lines []string
	for _, piece := range pieces {
		o.take(piece, func(a Activity) {
			switch {
			case a.Kind == Lost:
				lines = append(lines, "lost: "+strconv.FormatInt(a.Lines, 10))
			default:
				lines = append(lines, a.Stream[3:]+": "+a.Text)
			}
		})
	}
	return lines
}

func out(cycle int, text string) keeper.Echo {
	return keeper.Echo{At: 1, Cycle: cycle, Data: []byte(text)}
}

func TestWatchedLines(t *testing.T) {
	t.Parallel()
	end := func(cycle int) keeper.Echo { return keeper.Echo{At: 2, Cycle: cycle, End: true} }
	bad := func(cycle int, text string) keeper.Echo {
		return keeper.Echo{At: 1, Cycle: cycle, Data: []byte(text), Error: true}
	}
	mid := func(p keeper.Echo) keeper.Echo { p.Mid = true; return p }
	lost := func(p keeper.Echo) keeper.Echo { p.Lost = 5; return p }
	for name, c := range map[string]struct {
		pieces []keeper.Echo
		want   []string
	}{
		"lines":                        {[]keeper.Echo{out(1, "a\nb\r\n\nc"), end(1)}, []string{"out: a", "out: b", "out: ", "out: c"}},
		"commands side by side":        {[]keeper.Echo{out(1, "a"), out(2, "x\n"), bad(1, "e\n"), out(1, "b\n")}, []string{"out: x", "err: e", "out: ab"}},
		"a rune torn by a border":      {[]keeper.Echo{out(1, "gr\xc3"), mid(out(1, "\xbcn\n"))}, []string{"out: grün"}},
		"an escape torn by a border":   {[]keeper.Echo{out(1, "a\x1b]5"), mid(out(1, "2;c;QQ\ab\n"))}, []string{"out: a\x1b]52;c;QQ\ab"}}, // frontends clean whole lines
		"a secret torn by a border":    {[]keeper.Echo{out(1, "exactly-th"), mid(out(1, "is-secret\n"))}, []string{"out: [redacted]"}},
		"a named secret":               {[]keeper.Echo{out(1, "DB_PASSWORD=hunter22 x\n")}, []string{"out: DB_PASSWORD=[redacted] x"}},
		"a secret without an end":      {[]keeper.Echo{bad(1, "TOKEN=abc"), end(1)}, []string{"err: TOKEN=[redacted]"}},
		"a private key":                {[]keeper.Echo{out(1, "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nafter\n")}, []string{"out: -----BEGIN RSA PRIVATE KEY-----[redacted]", "out: [redacted]", "out: [redacted]", "out: [redacted]", "out: after"}},
		"the beginning was missed":     {[]keeper.Echo{mid(out(1, "ret=abc\nnext\n"))}, []string{"out: next"}},
		"some were missed":             {[]keeper.Echo{out(1, "begun"), lost(mid(out(1, "rest\nnext\n")))}, []string{"lost: 5", "out: next"}},
		"some of another were missed":  {[]keeper.Echo{out(1, "begun"), lost(out(2, "x\n")), mid(out(1, "rest\ny\n"))}, []string{"lost: 5", "out: x", "out: y"}},
		"a long line":                  {[]keeper.Echo{out(1, strings.Repeat("x", lineKept)), mid(out(1, "y\nz\n"))}, []string{"out: " + strings.Repeat("x", lineShown) + "…", "out: z"}},
		"a line as long as is allowed": {[]keeper.Echo{out(1, strings.Repeat("x", lineShown)+"\n")}, []string{"out: " + strings.Repeat("x", lineShown)}},
		"a secret at the cut":          {[]keeper.Echo{out(1, strings.Repeat("x", lineShown-10)+" exactly-this-secret "+strings.Repeat("x", lineKept)+"\n")}, []string{"out: " + strings.Repeat("x", lineShown-10) + " [redacted…"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, seen(c.pieces...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
