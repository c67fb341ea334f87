package feed_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
)

// many lists directories with files, each with a number of its own, as changed says.
func many(dirs, files int, changed func(dir, file int) (inode uint64, there bool)) []byte {
	l, count := listing(), uint64(0)
	for d := range dirs {
		l.dir(fmt.Sprintf("dir-%03d", d))
		count++
		for f := range files {
			inode, there := changed(d, f)
			if !there {
				continue
			}
			l.begin('f', fmt.Sprintf("file-%04d", f))
			for range 5 {
				l.number(uint64(d * f))
			}
			l.number(inode)
			count++
		}
		l.end()
	}
	return l.end().number(count).Bytes()
}

// A difference makes the listing, whatever the one before was, and costs what has
// changed.
func TestDifferences(t *testing.T) {
	t.Parallel()
	const dirs, files = 50, 200
	plain := func(d, f int) (uint64, bool) { return uint64(d*files + f + 1), true }
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	before := many(dirs, files, plain)
	for name, c := range map[string]struct {
		before, now []byte
		most        int // bytes of the difference
	}{
		"the same":               {before, before, 100},
		"nothing before":         {nil, before, len(before) + 100},
		"nothing now":            {before, many(0, 0, plain), 200},
		"another file before":    {noise, before, len(before) + 5000},
		"something of no format": {before, noise, len(noise) + 5000},
		"ten files": {before, many(dirs, files, func(d, f int) (uint64, bool) {
			if f == d && d < 10 {
				return uint64(1_000_000 + d), true
			}
			return plain(d, f)
		}), 1000},
		"files at the ends of directories": {before, many(dirs, files, func(d, f int) (uint64, bool) {
			if f == files-1 || f == 0 {
				return uint64(1_000_000 + d), true
			}
			return plain(d, f)
		}), 100 * dirs},
		"half of a directory is gone": {before, many(dirs, files, func(d, f int) (uint64, bool) {
			n, _ := plain(d, f)
			return n, d != 7 || f%100 >= 50
		}), 300},
		"directories are back": {many(dirs, files, func(d, f int) (uint64, bool) { n, _ := plain(d, f); return n, d > 20 }), before, 21*files*30 + 1000},
	} {
		var difference bytes.Buffer
		if err := feed.WriteDifference(&difference, c.before, c.now); err != nil {
			t.Fatal(err)
		}
		size := difference.Len()
		got, err := feed.ReadDifference(&difference, c.before)
		if err != nil || !bytes.Equal(got, c.now) {
			t.Errorf("%s: %d bytes instead of %d, %v", name, len(got), len(c.now), err)
		}
		if size > c.most {
			t.Errorf("%s: the difference between %d and %d bytes takes %d, more than %d", name, len(c.before), len(c.now), size, c.most)
		}
	}
}

func difference() *text {
	t := &text{}
	t.WriteString("litterbox changes since 1\n")
	return t
}

func (t *text) keep(from, n uint64) *text { t.WriteByte('k'); return t.number(from).number(n) }

func (t *text) take(what string) *text {
	t.WriteByte('t')
	t.number(uint64(len(what)))
	t.WriteString(what)
	return t
}

// A hostile machine's difference is taken as it is or not at all, and never makes
// more than a listing may be.
func TestDifferencesOfAHostileMachine(t *testing.T) {
	t.Parallel()
	before := bytes.Repeat([]byte("0123456789"), 100_000)
	good := func() *text { return difference().keep(10, 5).take("new").end().number(8) }
	if got, err := feed.ReadDifference(bytes.NewReader(good().Bytes()), before); err != nil || string(got) != "01234new" {
		t.Fatalf("the control makes %q, %v", got, err)
	}
	endless := difference()
	for range feed.MaxKept/len(before) + 1 {
		endless.keep(0, uint64(len(before)))
	}
	for name, bad := range map[string]*text{
		"nothing":               {},
		"a listing":             listing(),
		"behind the end":        difference().keep(uint64(len(before)), 1).end().number(1),
		"over the end":          difference().keep(5, uint64(len(before))).end().number(uint64(len(before))),
		"an offset of no end":   difference().keep(1<<63, 1).end().number(1),
		"a number of no end":    difference().keep(0, 1<<63).end().number(1),
		"gigabytes":             func() *text { t := difference(); t.WriteByte('t'); return t.number(1 << 40) }(),
		"more than it says":     difference().take("new").end().number(2),
		"fewer than it says":    difference().take("new").end().number(4),
		"an unknown part":       difference().begin('z', "x").end().number(0),
		"more than may be kept": endless.end().number(0),
	} {
		if got, err := feed.ReadDifference(bytes.NewReader(bad.Bytes()), before); err == nil {
			t.Errorf("%s makes %d bytes", name, len(got))
		}
	}
	whole := good().Bytes()
	for n := range whole {
		if got, err := feed.ReadDifference(bytes.NewReader(whole[:n]), before); err == nil {
			t.Errorf("cut off after %d bytes it makes %q", n, got)
		}
	}
}

func FuzzDifference(f *testing.F) {
	f.Add([]byte("0123456789"), difference().keep(1, 3).take("x").end().number(4).Bytes())
	f.Add(listing().dir("a").file("x").end().file("b").end().number(3).Bytes(), listing().file("b").end().number(1).Bytes())
	f.Fuzz(func(t *testing.T, before, now []byte) {
		_, _ = feed.ReadDifference(bytes.NewReader(now), before) // it ends, within its bounds
		var made bytes.Buffer
		if err := feed.WriteDifference(&made, before, now); err != nil {
			t.Fatal(err)
		}
		if got, err := feed.ReadDifference(&made, before); err != nil || !bytes.Equal(got, now) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}
