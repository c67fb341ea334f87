package fsmonitor

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// index makes one of version 2 with these paths.
func index(paths ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(paths)))
	for _, path := range paths {
		entry := append(make([]byte, 40+20), byte(len(path)>>8), byte(len(path)))
		entry = append(entry, path...)
		b = append(b, append(entry, make([]byte, 8-len(entry)%8)...)...)
	}
	return append(b, make([]byte, 20)...)
}

func base(paths ...string) string {
	_, names, _ := strings.Cut(string(FormatBase(20, paths)), "\n")
	return names
}

func TestNewer(t *testing.T) {
	got, err := newer(base("a", "b/c", "d", "z"), index("a", "b", "b/a", "b/c", "b/c", "e", "z", "zz"), 20)
	if want := []string{"b", "b/a", "e", "zz"}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("%q %v, want %q", got, err, want)
	}
}

// The index inside is the agent's: whatever it holds, the result is an answer
// or an error.
func FuzzNewer(f *testing.F) {
	f.Add(base("a", "b/c"), index("a", "b", "c"))
	f.Add("", index())
	f.Add("\x00\x00", append(index("a")[:60], "link\xff\xff\xff\xff"...))
	f.Fuzz(func(t *testing.T, base string, index []byte) {
		found, err := newer(base, index, 20)
		if err == nil && len(found) > len(index) {
			t.Fatalf("%d paths of %d bytes", len(found), len(index))
		}
	})
}
