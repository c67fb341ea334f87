package branch

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// packed is an object of a pack that a test makes up.
type packed struct {
	kind    int
	size    uint64 // declared
	base    string // of a delta: the bytes between header and content
	content []byte
}

// deltaOf returns the beginning of a delta with the sizes of its source and result.
func deltaOf(source, result uint64, rest ...byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, source), result), rest...)
}

func makePack(t testing.TB, objects ...packed) []byte {
	t.Helper()
	pack := append([]byte("PACK"), 0, 0, 0, 2, 0, 0, 0, byte(len(objects)))
	for _, o := range objects {
		b := byte(o.kind<<4) | byte(o.size&15)
		for size := o.size >> 4; ; size >>= 7 {
			if size == 0 {
				pack = append(pack, b)
				break
			}
			pack = append(pack, b|0x80)
			b = byte(size & 0x7f)
		}
		pack = append(pack, o.base...)
		var deflated bytes.Buffer
		w := zlib.NewWriter(&deflated)
		if _, err := w.Write(o.content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		pack = append(pack, deflated.Bytes()...)
	}
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

func TestPackIsJudgedByWhatItDeclares(t *testing.T) {
	t.Parallel()
	const base = "\x01\x23\x45\x67\x89\x01\x23\x45\x67\x89\x01\x23\x45\x67\x89\x01\x23\x45\x67\x89"
	zeros := make([]byte, 1<<16)
	file := func(size int) packed { return packed{kind: packBlob, size: uint64(size), content: zeros[:size]} }
	delta := func(result uint64) packed {
		content := deltaOf(100, result, 0x90, 100)
		return packed{kind: packNamedDelta, size: uint64(len(content)), base: base, content: content}
	}
	limits := packLimits{file: 1 << 15, total: 1 << 17, objects: 8}
	for name, test := range map[string]struct {
		pack []byte
		want string
	}{
		"ordinary":              {makePack(t, file(100), file(0), delta(200), packed{kind: packOffsetDelta, size: 4, base: "\x80\x20", content: deltaOf(1, 1, 1, 'x')}), ""},
		"nothing":               {makePack(t), ""},
		"a large file":          {makePack(t, file(1<<15+1)), "a file is larger than"},
		"a delta that expands":  {makePack(t, delta(1<<15+1)), "a delta makes a file larger than"},
		"a delta beyond int64":  {makePack(t, delta(1<<64-1)), "a delta makes a file larger than"},
		"files together":        {makePack(t, file(1<<15), file(1<<15), file(1<<15), file(1<<15), file(1)), "everything together is larger than"},
		"deltas together":       {makePack(t, delta(1<<15), delta(1<<15), delta(1<<15), delta(1<<15)), "everything together is larger than"},
		"a directory":           {makePack(t, packed{kind: packTree, size: maxTree + 1}), "a directory is larger than"},
		"a commit":              {makePack(t, packed{kind: packCommit, size: git.MaxCommit + 1}), "a commit is larger than"},
		"objects":               {append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x09"), zeros...), "more than 8 objects"},
		"more than it declares": {makePack(t, packed{kind: packBlob, size: 10, content: zeros}), "another size than it declares"},
		"less than it declares": {makePack(t, packed{kind: packBlob, size: 10, content: zeros[:9]}), "another size than it declares"},
		"a delta of nothing":    {makePack(t, packed{kind: packNamedDelta, base: base}), "a delta has no beginning"},
		"an unknown kind":       {makePack(t, packed{kind: 5}), "unknown kind"},
		"a size without an end": {append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01"), bytes.Repeat([]byte{0xbf}, 20)...), "larger than any can be"},
		"cut off":               {makePack(t, file(100))[:16], "unexpected EOF"},
		"no pack":               {[]byte("PACK\x00\x00\x00\x09\x00\x00\x00\x00"), "not a pack"},
	} {
		err := checkPack(iotest.OneByteReader(bytes.NewReader(test.pack)), 20, limits)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || fault.KindOf(err) != fault.Denied):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// FuzzPack takes any bytes for a pack, and makes one object of the rest: it is
// accepted exactly if it is what it declares and within the limits.
func FuzzPack(f *testing.F) {
	f.Add(makePack(f, packed{kind: packBlob, size: 3, content: []byte("abc")}), uint8(packBlob), uint64(3), uint64(0), []byte("abc"))
	f.Add([]byte("PACK"), uint8(packNamedDelta), uint64(2), uint64(1<<40), []byte{0x90, 1})
	f.Add(makePack(f, packed{kind: packOffsetDelta, base: "\x85\x01", size: 3, content: deltaOf(1, 1, 1)}), uint8(packOffsetDelta), uint64(4), uint64(9), []byte{1, 'x'})
	f.Fuzz(func(t *testing.T, anything []byte, kind uint8, declared, result uint64, content []byte) {
		limits := packLimits{file: 1 << 10, total: 1 << 11, objects: 4}
		_ = checkPack(bytes.NewReader(anything), 20, limits)
		o := packed{kind: int(kind % 8), size: declared, content: content}
		sum := declared
		switch o.kind {
		case packOffsetDelta:
			o.base, o.content = "\x01", deltaOf(0, result, content...)
			sum += result
		case packNamedDelta:
			o.base, o.content = strings.Repeat("b", 20), deltaOf(0, result, content...)
			sum += result
		}
		fits := declared <= 1<<11 && result <= 1<<11 && sum <= 1<<11
		switch o.kind {
		case packBlob:
			fits = declared <= 1<<10
		case packOffsetDelta, packNamedDelta:
			fits = fits && result <= 1<<10
		case packCommit, packTree, packTag:
			fits = declared <= 1<<11
		default:
			fits = false
		}
		fits = fits && declared == uint64(len(o.content))
		err := checkPack(io.MultiReader(bytes.NewReader(makePack(t, o))), 20, limits)
		if (err == nil) != fits {
			t.Errorf("kind %d, %d bytes declared as %d, result %d: %v", o.kind, len(o.content), declared, result, err)
		}
	})
}

// FuzzTreeObject takes any bytes for a tree: the entries read are all there are.
func FuzzTreeObject(f *testing.F) {
	f.Add([]byte("100644 a\x00"+strings.Repeat("x", 20)+"40000 b c\x00"+strings.Repeat("y", 20)), false)
	f.Add([]byte("40000 \x00"+strings.Repeat("x", 32)), true)
	f.Fuzz(func(t *testing.T, content []byte, long bool) {
		hash := 20
		if long {
			hash = 32
		}
		lines, err := parseTree(content, hash)
		if err != nil {
			return
		}
		var again []byte
		for _, l := range lines {
			again = append(again, l.mode+" "+l.name+"\x00"+l.oid...)
		}
		if !bytes.Equal(again, content) {
			t.Errorf("%q was read as %q", content, again)
		}
	})
}
