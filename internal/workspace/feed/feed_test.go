package feed_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
)

// said is a source that says what it was given.
type said struct {
	list    []byte
	content []byte
	endless bool // after list, zeros follow for ever
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func (s said) List(context.Context) (io.ReadCloser, error) {
	if s.endless {
		return io.NopCloser(io.MultiReader(bytes.NewReader(s.list), zeros{})), nil
	}
	return io.NopCloser(bytes.NewReader(s.list)), nil
}

func (s said) Content(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s.content)), nil
}

func (said) Refs(context.Context) (map[string]string, error) { return nil, nil }

func (said) Size(context.Context) (changes, home int64, err error) { return 0, 0, nil }

// text builds a listing field by field, without the writer's care.
type text struct{ bytes.Buffer }

func listing() *text {
	t := &text{}
	t.WriteString("litterbox changes 1\n")
	t.number(0) // when it began
	return t
}

func (t *text) number(n uint64) *text { t.Write(binary.AppendUvarint(nil, n)); return t }

func (t *text) begin(op byte, name string) *text {
	t.WriteByte(op)
	t.number(uint64(len(name)))
	t.WriteString(name)
	return t
}

func (t *text) file(name string) *text {
	t.begin('f', name)
	for range 6 { // executable, size, held, mtime, ctime, inode
		t.number(0)
	}
	return t
}

func (t *text) dir(name string) *text { return t.begin('d', name).number(0) }

func (t *text) end() *text { t.WriteByte('e'); return t }

func take(t *testing.T, s said, limits feed.Limits) (workspace.Changes, error) {
	t.Helper()
	return feed.Workspace{Source: s, Limits: limits}.Changes(t.Context())
}

// A machine's listing is taken as it is, or not at all: no part of a malformed
// or cut-off listing counts as the sandbox's files.
func TestListingsOfAHostileMachine(t *testing.T) {
	t.Parallel()
	small := feed.Limits{Entries: 100, Bytes: 1000}
	good := func() *text { return listing().dir("a").file("x").end().file("b").end().number(3) }
	if changes, err := take(t, said{list: good().Bytes()}, small); err != nil {
		t.Fatalf("the control is refused: %v", err)
	} else if f, err := changes.Top(); err != nil {
		t.Fatal(err)
	} else if names, err := f.Names(); err != nil || strings.Join(names, " ") != "a b" {
		t.Fatalf("the control has %q, %v", names, err)
	}
	many, deep, long := listing(), listing(), listing()
	for n := range 101 {
		many.file("f" + string(rune('A'+n/26)) + string(rune('a'+n%26)))
	}
	for range 60 {
		deep.dir(strings.Repeat("d", 100))
	}
	for n := range 9 {
		long.file(strings.Repeat(string(rune('a'+n)), 120))
	}
	for name, bad := range map[string]*text{
		"nothing":             {},
		"another version":     func() *text { t := &text{}; t.WriteString("litterbox changes 9\n"); return t }(),
		"a parent":            listing().file("..").end().number(1),
		"itself":              listing().dir(".").end().end().number(1),
		"an absolute path":    listing().file("/etc/passwd").end().number(1),
		"a path":              listing().file("a/b").end().number(1),
		"no name":             listing().file("").end().number(1),
		"a NUL":               listing().file("a\x00b").end().number(1),
		"a long name":         listing().file(strings.Repeat("x", 256)).end().number(1),
		"twice":               listing().file("a").file("a").end().number(2),
		"twice as two kinds":  listing().dir("a").end().file("a").end().number(2),
		"out of order":        listing().file("b").file("a").end().number(2),
		"below .git":          listing().dir(".git").file("HEAD").end().end().number(2),
		"below another .git":  listing().dir("a").dir(".git").file("HEAD").end().end().end().number(3),
		"an unknown kind":     listing().begin('z', "a").end().number(1),
		"an unknown reason":   listing().begin('u', "a").number(0).end().number(1),
		"left out unasked":    listing().begin('p', "a").end().number(1),
		"unknown properties":  listing().begin('d', "a").number(4).end().end().number(1),
		"fewer than it says":  listing().file("a").end().number(2),
		"more than it says":   listing().file("a").file("b").end().number(1),
		"no number of them":   listing().file("a").end(),
		"too many":            many.end().number(101),
		"too deep":            deep,
		"too much":            long.end().number(9),
		"a negative size":     func() *text { t := listing().begin('f', "a"); t.number(0).number(1 << 63); return t }(),
		"a number of no end":  func() *text { t := listing().begin('f', "a"); t.Write(bytes.Repeat([]byte{0xff}, 20)); return t }(),
		"a size of gigabytes": func() *text { t := listing(); t.WriteByte('l'); t.number(1 << 40); return t }(),
	} {
		for _, endless := range []bool{false, true} {
			if endless && (name == "no number of them" || name == "fewer than it says") {
				continue // zeros are a number, too
			}
			changes, err := take(t, said{list: bad.Bytes(), endless: endless}, small)
			if !errors.Is(err, workspace.ErrUnknown) || fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%s (endless %v): %v, %v", name, endless, changes, err)
			}
		}
	}
	whole := good().Bytes()
	for n := range whole {
		if _, err := take(t, said{list: whole[:n]}, small); !errors.Is(err, workspace.ErrUnknown) {
			t.Errorf("cut off after %d bytes: %v", n, err)
		}
	}
}

// A caller can give up on a machine that has fallen silent.
func TestListingThatFallsSilent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	silent, w := io.Pipe()
	go func() {
		_, _ = w.Write(listing().Bytes())
		cancel()
	}()
	_, err := feed.Workspace{Source: streams{silent}}.Changes(ctx)
	if !errors.Is(err, workspace.ErrUnknown) {
		t.Error(err)
	}
}

type streams struct{ io.ReadCloser }

func (s streams) List(context.Context) (io.ReadCloser, error) { return s, nil }

func (streams) Content(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

func (streams) Refs(context.Context) (map[string]string, error) { return nil, errors.ErrUnsupported }

func (streams) Size(context.Context) (changes, home int64, err error) {
	return 0, 0, errors.ErrUnsupported
}

func content(size uint64, chunks ...string) *text {
	t := &text{}
	t.WriteString("litterbox content 1\n")
	t.WriteByte('f')
	t.number(0).number(size).number(size).number(0).number(0).number(0).number(0)
	for _, chunk := range chunks {
		t.number(uint64(len(chunk)))
		t.WriteString(chunk)
	}
	return t
}

func (t *text) again(size uint64) *text {
	return t.number(0).number(0).number(size).number(size).number(0).number(0).number(0)
}

// Content that is cut off is an error, never a shorter file; one that grew is
// read again the next time.
func TestContentOfAHostileMachine(t *testing.T) {
	t.Parallel()
	open := func(c []byte) (string, workspace.Entry, error) {
		changes, err := take(t, said{list: listing().file("a").end().number(1).Bytes(), content: c}, feed.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := changes.File("a")
		if err != nil {
			return "", workspace.Entry{}, err
		}
		defer f.Close()
		got, err := io.ReadAll(io.LimitReader(f, f.Entry().Size))
		if err != nil {
			return "", workspace.Entry{}, err
		}
		again, err := f.Again()
		return string(got), again, err
	}
	whole := content(5, "he", "llo").again(5).Bytes()
	if got, again, err := open(whole); got != "hello" || again.Size != 5 || err != nil {
		t.Fatalf("%q, %+v, %v", got, again, err)
	}
	for n := range whole {
		if got, _, err := open(whole[:n]); err == nil {
			t.Errorf("cut off after %d bytes it is %q", n, got)
		}
	}
	if got, again, err := open(content(5, "hello, world").again(12).Bytes()); got != "hello" || again.Size == 5 || err != nil {
		t.Errorf("grown: %q, %+v, %v", got, again, err)
	}
	if got, again, err := open(content(5, "he").again(2).Bytes()); got != "he" || again.Size != 2 || err != nil {
		t.Errorf("shorter: %q, %+v, %v", got, again, err)
	}
	if got, _, err := open(content(5, strings.Repeat("x", 300<<10)).Bytes()); err == nil {
		t.Errorf("a chunk that is too large: %d bytes", len(got))
	}
}

// FuzzListing takes whatever a machine may say, within bounds.
func FuzzListing(f *testing.F) {
	f.Add(listing().dir("a").file("x").end().file("b").end().number(3).Bytes())
	f.Add(listing().begin('u', "a").number(1).begin('w', "b").end().number(2).Bytes())
	f.Add(listing().begin('l', "a").number(0).number(0).number(0).number(0).number(0).number(0).number(1).Bytes())
	f.Fuzz(func(t *testing.T, list []byte) {
		changes, err := take(t, said{list: list, content: list}, feed.Limits{Entries: 1000, Bytes: 10_000})
		if err != nil {
			if !errors.Is(err, workspace.ErrUnknown) {
				t.Fatal(err)
			}
			return
		}
		top, err := changes.Top()
		if err != nil {
			t.Fatal(err)
		}
		// A listing that was taken can be written again, and is the same.
		var again bytes.Buffer
		if top.Opaque() {
			t.Fatal("the top is opaque")
		}
		if err := feed.Write(t.Context(), &again, changes); err != nil {
			t.Fatal(err)
		}
		var third bytes.Buffer
		same, err := take(t, said{list: again.Bytes()}, feed.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if err := feed.Write(t.Context(), &third, same); err != nil || !bytes.Equal(again.Bytes(), third.Bytes()) {
			t.Fatalf("%q is not %q: %v", third.Bytes(), again.Bytes(), err)
		}
	})
}
