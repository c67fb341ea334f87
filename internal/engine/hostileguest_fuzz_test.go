package engine_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// guestSeeds are scripts that were worth writing down.
func guestSeeds() []string {
	return []string{
		"", "h\nh\nh\nh\nh\nh", "d{}", "d\nd[]\ndnull\nd0\nd\"\"", "f{\"kind\":\"internal\",\"text\":\"\x1b[2J\"}",
		"s\x1b]0;owned\x07\nr\xff\xff\xff\xff\nr\x00\x00\x00\x00", "o" + strings.Repeat("x", 1000),
		"d{\"code\":-1,\"background\":[{\"pid\":1,\"command\":\"\x1b[2J\"}],\"kept\":{}}", "d{\"path\":\"../../README\",\"size\":-1,\"mode\":4294967295}",
		"h\nh\nd{\"commits\":9223372036854775807,\"head\":\"../../refs/heads/main\"}\nd{\"version\":0}\nd{\"version\":2147483647,\"pid\":-1}",
		"p{}\nc\xff\xff\xff\xff\nc\nx\nd{\"code\":0}\nq{}", "h\nd{\"processes\":[{\"pid\":-1}],\"complete\":true}\nf{}",
	}
}

// FuzzHostileGuest runs the seeds, and what was kept of findings.
func FuzzHostileGuest(f *testing.F) {
	for _, seed := range guestSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(hostileGuest)
}

// TestHostileGuestsAtRandom makes scripts of its own for as long as
// LITTERBOX_TEST_FUZZ_TIME says. Each use of a keeper takes long beside what Go's
// fuzzing expects: that counts a worker as hung while it minimizes. A script that
// fails is kept beside the others.
func TestHostileGuestsAtRandom(t *testing.T) {
	text := os.Getenv("LITTERBOX_TEST_FUZZ_TIME")
	if text == "" {
		t.Skip("LITTERBOX_TEST_FUZZ_TIME says how long")
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random, tried := rand.New(rand.NewPCG(seed, 0)), 0
	for end := time.Now().Add(long); time.Now().Before(end); tried++ {
		script := randomScript(random)
		if !t.Run("script", func(t *testing.T) { hostileGuest(t, script) }) {
			at := filepath.Join("testdata", "fuzz", "FuzzHostileGuest", fmt.Sprintf("%x", sha256.Sum256(script))[:16])
			err := os.MkdirAll(filepath.Dir(at), 0o755)
			if err == nil {
				err = os.WriteFile(at, fmt.Appendf(nil, "go test fuzz v1\n[]byte(%q)\n", script), 0o644)
			}
			t.Fatalf("after %d scripts: %q is kept in %s (%v)", tried, script, at, err)
		}
	}
	t.Logf("%d scripts", tried)
}

// randomScript takes lines of the seeds, in any order, and changes some of their bytes:
// the kind of a frame, lengths and numbers, or all.
func randomScript(random *rand.Rand) []byte {
	var known []string
	for _, seed := range guestSeeds() {
		known = append(known, strings.Split(seed, "\n")...)
	}
	const kinds = "hrdfsoxpcqie"
	var lines []string
	for range 1 + random.IntN(12) {
		line := []byte(known[random.IntN(len(known))])
		switch random.IntN(6) {
		case 0: // as it is
		case 1:
			line = append([]byte{kinds[random.IntN(len(kinds))]}, line[min(1, len(line)):]...)
		case 2:
			line = line[:random.IntN(len(line)+1)]
		case 3:
			for range 1 + random.IntN(8) {
				at := random.IntN(len(line) + 1)
				line = slices.Insert(line, at, byte(random.IntN(256)))
			}
		case 4:
			other := known[random.IntN(len(known))]
			line = append(line, other[min(1, len(other)):]...)
		default:
			for n := range line {
				if n > 0 && random.IntN(4) == 0 {
					line[n] ^= 1 << random.IntN(8)
				}
			}
		}
		lines = append(lines, string(line))
	}
	return []byte(strings.Join(lines, "\n"))
}

// hostileGuest lets a guest say anything to a real engine and keeper, from
// its first command to its end: each use ends, with a printable error of
// litterbox's or with none; the human's checkout stays as it was, and the sandbox
// can be deleted.
func hostileGuest(t *testing.T, script []byte) {
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
}
