package engine_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/driver/fake"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// turned is a guest that has been taken over: it answers each request with the
// next line of its script. The first byte says how, the rest is the content.
type turned struct {
	mu     sync.Mutex
	script []string
}

func (g *turned) next() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.script) == 0 {
		return ""
	}
	line := g.script[0]
	g.script = g.script[1:]
	return line
}

// turn gives it a script, or with none makes it an honest guest again.
func (g *turned) turn(script []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.script = script
}

// answer ends each stream after its answer: nothing waits for it for ever.
func (g *turned) answer(_ wire.Request, stream wire.Stream) bool {
	line := g.next()
	if line == "" {
		return false
	}
	out, rest := wire.NewWriter(stream), []byte(line[1:])
	switch line[0] {
	case 'h': // as an honest one
		return false
	case 'r': // bytes that may not be frames
		_, _ = stream.Write(rest)
	case 'd': // a result
		_ = out.Frame(wire.KindResult, rest)
	case 'f': // a failure
		_ = out.Frame(wire.KindError, rest)
	case 's': // a command begins, and prints
		_ = out.Frame(wire.KindStarted, []byte(`{"pid":7}`))
		_ = out.Frame(wire.KindStdout, rest)
		_ = out.Frame(wire.KindResult, []byte(`{"code":0}`))
	case 'o': // more than was asked for
		for range 64 {
			_ = out.Frame(wire.KindStdout, rest)
		}
	default: // a frame of any kind
		_ = out.Frame(wire.Kind(line[0]), rest)
	}
	return true
}

// FuzzHostileGuest lets a guest say anything to a real engine and keeper, from
// its first command to its end: each use ends, with a printable error of
// litterbox's or with none; the human's checkout stays as it was, and the sandbox
// can be deleted.
func FuzzHostileGuest(f *testing.F) {
	for _, seed := range []string{
		"", "h\nh\nh\nh\nh\nh", "d{}", "d\nd[]\ndnull\nd0\nd\"\"", "f{\"kind\":\"internal\",\"text\":\"\x1b[2J\"}",
		"s\x1b]0;owned\x07\nr\xff\xff\xff\xff\nr\x00\x00\x00\x00", "o" + strings.Repeat("x", 1000),
		"d{\"code\":-1,\"background\":[{\"pid\":1,\"command\":\"\x1b[2J\"}],\"kept\":{}}", "d{\"path\":\"../../README\",\"size\":-1,\"mode\":4294967295}",
		"h\nh\nd{\"commits\":9223372036854775807,\"head\":\"../../refs/heads/main\"}\nd{\"version\":0}\nd{\"version\":2147483647,\"pid\":-1}",
		"p{}\nc\xff\xff\xff\xff\nc\nx\nd{\"code\":0}\nq{}", "h\nd{\"processes\":[{\"pid\":-1}],\"complete\":true}\nf{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		var guest turned
		w := newWorldOf(t, fake.Options{Guest: guest.answer})
		ctx, cancel := context.WithTimeout(gittest.Context(t), 5*time.Minute)
		defer cancel()
		if _, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"}); err != nil {
			t.Fatal(err)
		}
		guest.turn(strings.Split(string(script), "\n"))
		exec := func() error {
			_, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}, Streams: engine.Streams{Stdout: io.Discard, Stderr: io.Discard}})
			return err
		}
		uses := []struct {
			name string
			run  func() error
		}{
			{"exec", exec},
			{"read", func() error { return w.Read(ctx, w.dir, "fix", "README", io.Discard) }},
			{"write", func() error {
				_, _, err := w.Write(ctx, engine.WriteRequest{Dir: w.dir, Name: "fix", Path: "made", Content: strings.NewReader("made\n")})
				return err
			}},
			{"status", func() error { _, err := w.Status(ctx, w.dir, "fix"); return err }},
			{"diff", func() error {
				_, err := w.Diff(ctx, engine.DiffRequest{Dir: w.dir, Name: "fix", Stdout: io.Discard, Stderr: io.Discard})
				return err
			}},
			{"stop", func() error { _, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "fix"}); return err }},
			{"start", func() error { _, err := w.Start(ctx, w.dir, "fix", false); return err }},
			{"exec again", exec},
		}
		for _, use := range uses {
			err := use.run()
			if ctx.Err() != nil {
				t.Fatalf("%s does not end", use.name)
			}
			var known *fault.Error
			if err != nil && !errors.As(err, &known) {
				t.Errorf("%s: a foreign error: %v", use.name, err)
			}
			if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }) {
				t.Errorf("%s: a terminal obeys %q", use.name, err.Error())
			}
		}
		guest.turn(nil)
		if _, err := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix", Force: true, Stop: true}); err != nil {
			t.Errorf("delete: %v", err)
		}
		if got := gittest.Git(t, w.dir, "status", "--porcelain"); got != "" {
			t.Errorf("the checkout was changed: %s", got)
		}
		if got, err := os.ReadFile(filepath.Join(w.dir, "README")); err != nil || string(got) != "hello\n" {
			t.Errorf("README holds %q, %v", got, err)
		}
		if got := strings.TrimSpace(gittest.Git(t, w.dir, "log", "--format=%s", "HEAD")); got != "first" {
			t.Errorf("the human's branch has %q", got)
		}
	})
}
