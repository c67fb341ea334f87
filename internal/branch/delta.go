package branch

import (
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// delta is the sandbox's state relative to its layers, as the last iteration
// recorded it: the layers without everything at or below a path of gone, plus
// files. It is a cache: if it is lost, it is rebuilt from the commits, which
// only costs hashing again.
type delta struct {
	base     string                // commit the layers hold
	last     string                // commit of the last iteration
	lastTree string                // its tree as the sandbox has it
	inner    string                // last commit taken from the agent's own history
	shared   bool                  // others committed to the branch since the base
	files    map[string]layer.File // path → present content
	gone     map[string]struct{}   // paths of the layers that no longer exist
	released map[string]struct{}   // paths the agent's own commits no longer track
}

func newDelta(base string) *delta {
	return &delta{
		base: base, last: base,
		files: map[string]layer.File{}, gone: map[string]struct{}{}, released: map[string]struct{}{},
	}
}

// covered reports whether the path or a directory above it is in set.
func covered(set map[string]struct{}, path string) bool {
	if len(set) == 0 {
		return false
	}
	for {
		if _, ok := set[path]; ok {
			return true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return false
		}
		path = path[:i]
	}
}

// The file format: magic, then fields in order, then CRC-32C of all before it.
// Strings are a uvarint length and bytes, maps are sorted. The first version
// did not record hollow bytes; it is read as if there were none.
const (
	deltaMagic  = "litterbox delta 2\n"
	deltaMagic1 = "litterbox delta 1\n"
	maxString   = 1 << 16
)

// errDelta means that a delta file is torn, foreign or of another version.
var errDelta = errors.New("the delta file is damaged")

func (d *delta) encode() []byte {
	b := []byte(deltaMagic)
	str := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, s := range []string{d.base, d.last, d.lastTree, d.inner} {
		str(s)
	}
	shared := uint64(0)
	if d.shared {
		shared = 1
	}
	b = binary.AppendUvarint(b, shared)
	b = binary.AppendUvarint(b, uint64(len(d.files)))
	for _, path := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[path]
		str(path)
		b = binary.AppendUvarint(b, uint64(f.Mode))
		str(f.Oid)
		b = binary.AppendUvarint(b, uint64(f.Size))
		b = binary.AppendVarint(b, f.Mtime)
		b = binary.AppendVarint(b, f.Ctime)
		b = binary.AppendUvarint(b, f.Ino)
		b = binary.AppendUvarint(b, uint64(f.Hollow))
	}
	for _, set := range []map[string]struct{}{d.gone, d.released} {
		b = binary.AppendUvarint(b, uint64(len(set)))
		for _, path := range slices.Sorted(maps.Keys(set)) {
			str(path)
		}
	}
	return binary.BigEndian.AppendUint32(b, seal.Sum(b))
}

// deltaReader takes fields off a byte slice; the first defect sticks.
type deltaReader struct {
	b   []byte
	bad bool
}

func (r *deltaReader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *deltaReader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *deltaReader) str() string {
	n := r.uint()
	if r.bad || n > maxString || n > uint64(len(r.b)) {
		r.bad = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *deltaReader) oid() string {
	s := r.str()
	r.bad = r.bad || (s != "" && !git.IsOid(s))
	return s
}

// decodeDelta reads what encode wrote. Every defect is errDelta.
func decodeDelta(b []byte) (*delta, error) {
	if len(b) < len(deltaMagic)+4 {
		return nil, errDelta
	}
	magic := string(b[:len(deltaMagic)])
	if magic != deltaMagic && magic != deltaMagic1 {
		return nil, errDelta
	}
	body := b[:len(b)-4]
	if seal.Sum(body) != binary.BigEndian.Uint32(b[len(body):]) {
		return nil, errDelta
	}
	r := &deltaReader{b: body[len(deltaMagic):]}
	d := newDelta(r.oid())
	d.last, d.lastTree, d.inner = r.oid(), r.oid(), r.oid()
	d.shared = r.uint() == 1
	for n := r.uint(); n > 0 && !r.bad; n-- {
		path := r.str()
		f := layer.File{Mode: uint32(r.uint()), Oid: r.str(), Size: int64(r.uint())}
		f.Mtime, f.Ctime, f.Ino = r.int(), r.int(), r.uint()
		if magic == deltaMagic {
			f.Hollow = int64(r.uint())
		}
		if len(f.Oid) != 20 && len(f.Oid) != 32 {
			return nil, errDelta
		}
		d.files[path] = f
	}
	for _, set := range []map[string]struct{}{d.gone, d.released} {
		for n := r.uint(); n > 0 && !r.bad; n-- {
			set[r.str()] = struct{}{}
		}
	}
	if r.bad || len(r.b) != 0 {
		return nil, errDelta
	}
	return d, nil
}

// The delta file is replaced in two steps around the moment when git moves the
// branch: the new state is first written beside it (stage), the branch moves,
// then the new state replaces the old one (commit). A staged state whose commit
// is on the branch shows that the second step is missing, so kill -9 at any
// moment neither repeats nor loses the agent's own commits.
const staged = ".next"

func (d *delta) stage(path string, flush bool) error {
	f, err := os.OpenFile(path+staged, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(d.encode())
		if err == nil && flush {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", path+staged)
	}
	return nil
}

func commitStaged(path string) error {
	if err := os.Rename(path+staged, path); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
	}
	return nil
}

// loadDelta reads the delta file and a staged one beside it. A missing or
// damaged one is nil.
func loadDelta(path string) (current, next *delta) {
	read := func(path string) *delta {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		d, err := decodeDelta(b)
		if err != nil {
			return nil
		}
		return d
	}
	return read(path), read(path + staged)
}
