package engine

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzUnescapeMount gives back what the kernel writes into mountinfo: it escapes
// blanks, tabs, newlines, backslashes and # (fs/proc_namespace.c).
func FuzzUnescapeMount(f *testing.F) {
	for _, seed := range []string{"", "/a b", "/a\\040", "\\", "\n\t#", "/\\134", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		var escaped strings.Builder
		for _, b := range []byte(path) {
			if strings.IndexByte(" \t\n\\#", b) >= 0 {
				fmt.Fprintf(&escaped, "\\%03o", b)
			} else {
				escaped.WriteByte(b)
			}
		}
		if got := unescapeMount(escaped.String()); got != path {
			t.Errorf("%q was read as %q, want %q", escaped.String(), got, path)
		}
		unescapeMount(path) // text that no kernel writes does no harm
	})
}
