package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"sync"
)

// Known finds values that no process keeps, by keyed fingerprints in a file of
// lines, each a [KnownLine]. The keys are in files of their own, so that a copy
// of the fingerprints alone reveals nothing about a guessable value. It is safe
// for concurrent use, and a nil one finds nothing.
//
// The file is read again when it has changed. An unreadable file finds nothing:
// a written record is worth more than none.
type Known struct {
	path string

	mu     sync.Mutex
	seen   os.FileInfo
	tables []*fingerprints
}

// KnownLine is the fingerprints of one value in all forms in which programs
// write it.
type KnownLine struct {
	Key   string `json:"key"`   // the path of a file with KeySize random bytes
	Marks []byte `json:"marks"` // of Mark, one after the other
}

// OpenKnown finds values by the fingerprints in a file, which need not exist
// yet, and in the file that it replaced, whose name ends with [KnownBefore].
func OpenKnown(path string) *Known { return &Known{path: path} }

// KnownBefore is the suffix of a file of fingerprints that was full.
const KnownBefore = ".old"

// KeySize is the length of a key in bytes.
const KeySize = 32

const (
	window   = leastNamed // bytes of a value's beginning and end that are compared first
	sumSize  = 16
	markSize = 2 + 2 + 2 + sumSize
	longest  = 1<<16 - 1 // of a form
)

// Mark is the fingerprint of one form of a value: 16 bits each of its beginning
// and its end, its length, and a sum of all of it. So few bits of a part reveal
// nothing useful, and save a sum at nearly every place of a text. A form that
// is too short or too long has no mark.
func Mark(key, form []byte) []byte {
	if len(form) < window || len(form) > longest {
		return nil
	}
	t := &fingerprints{key: key}
	t.prepare()
	mark := binary.BigEndian.AppendUint16(nil, t.tag(string(form[:window])))
	mark = binary.BigEndian.AppendUint16(mark, t.tag(string(form[len(form)-window:])))
	mark = binary.BigEndian.AppendUint16(mark, uint16(len(form)))
	return append(mark, t.sum(form)...)
}

// fingerprints are those made with one key.
type fingerprints struct {
	key        []byte
	times, add uint64
	first      [1 << 16 / 64]uint64 // the tags that begin a mark
	marks      map[uint16][]mark    // by that tag
	most       int                  // the length of the longest form
}

type mark struct {
	last   uint16
	length int
	sum    [sumSize]byte
}

func (t *fingerprints) prepare() {
	mixed := sha256.Sum256(append([]byte("windows"), t.key...))
	t.times = binary.LittleEndian.Uint64(mixed[:]) | 1
	t.add = binary.LittleEndian.Uint64(mixed[8:])
}

// tag returns 16 bits of a window.
func (t *fingerprints) tag(s string) uint16 {
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40
	return uint16((x*t.times + t.add) >> 48)
}

func (t *fingerprints) sum(form []byte) []byte {
	mac := hmac.New(sha256.New, t.key)
	_, _ = mac.Write(form) // a hash never fails to write
	return mac.Sum(nil)[:sumSize]
}

func (t *fingerprints) take(marks []byte) {
	for ; len(marks) >= markSize; marks = marks[markSize:] {
		tag := binary.BigEndian.Uint16(marks)
		one := mark{last: binary.BigEndian.Uint16(marks[2:]), length: int(binary.BigEndian.Uint16(marks[4:]))}
		copy(one.sum[:], marks[6:])
		if one.length < window {
			continue
		}
		t.first[tag/64] |= 1 << (tag % 64)
		t.marks[tag] = append(t.marks[tag], one)
		t.most = max(t.most, one.length)
	}
}

// longestAt returns the length of the longest form that begins at text; 0 for none.
func (t *fingerprints) longestAt(text string) (length int) {
	tag := t.tag(text)
	if t.first[tag/64]&(1<<(tag%64)) == 0 {
		return 0
	}
	for _, one := range t.marks[tag] {
		if one.length > length && one.length <= len(text) && t.tag(text[one.length-window:]) == one.last &&
			bytes.Equal(t.sum([]byte(text[:one.length])), one.sum[:]) {
			length = one.length
		}
	}
	return length
}

// clean removes every form of every value from text.
func (k *Known) clean(text string) string {
	if k == nil || len(text) < window {
		return text
	}
	for _, t := range k.current() {
		var b strings.Builder
		kept := 0
		for i := 0; i+window <= len(text); i++ {
			if length := t.longestAt(text[i:]); length > 0 {
				b.WriteString(text[kept:i])
				b.WriteString(Gone)
				kept = i + length
				i = kept - 1
			}
		}
		if kept > 0 {
			text = b.String() + text[kept:]
		}
	}
	return text
}

// current returns the present fingerprints.
func (k *Known) current() []*fingerprints {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.path)
	if err != nil {
		k.seen, k.tables = nil, nil
		return nil
	}
	if k.seen != nil && os.SameFile(k.seen, info) && k.seen.Size() == info.Size() && k.seen.ModTime().Equal(info.ModTime()) {
		return k.tables
	}
	k.seen, k.tables = info, nil
	byKey := map[string]*fingerprints{}
	for _, path := range []string{k.path + KnownBefore, k.path} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // there was never a full one
		}
		for line := range bytes.Lines(data) {
			var one KnownLine
			if json.Unmarshal(line, &one) != nil {
				continue // torn by a crash
			}
			t := byKey[one.Key]
			if t == nil {
				key, err := os.ReadFile(one.Key)
				if err != nil || len(key) != KeySize {
					continue
				}
				t = &fingerprints{key: key, marks: map[uint16][]mark{}}
				t.prepare()
				byKey[one.Key] = t
				k.tables = append(k.tables, t)
			}
			t.take(one.Marks)
		}
	}
	return k.tables
}

// Secrets are what a record must not show: values at hand, and those known by
// their fingerprints. The zero value has neither.
type Secrets struct {
	Values []string
	Known  *Known
}

// Text is [Text] without all of them.
func (s Secrets) Text(text string) string {
	if clean, ok := s.document(text); ok {
		return clean
	}
	return byName(s.ByValue(text))
}

// Tokens is [Tokens] without all of them.
func (s Secrets) Tokens(text string) string { return Tokens(s.Known.clean(text), s.Values...) }

// ByValue removes only the values, and nothing by its shape or name.
func (s Secrets) ByValue(text string) string { return byValue(s.Known.clean(text), s.Values) }

// Argv is [Argv] without all of them.
func (s Secrets) Argv(argv []string) []string {
	clean := make([]string, len(argv))
	for i, argument := range argv {
		clean[i] = s.Known.clean(argument)
	}
	return Argv(clean, s.Values...)
}

// And returns s with more values.
func (s Secrets) And(values ...string) Secrets {
	return Secrets{Values: append(values[:len(values):len(values)], s.Values...), Known: s.Known}
}
