package layer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzOverlayAttributes sets any attribute on a file of the upper directory, as
// a sandbox can. Attributes that change the merged view and are not followed
// are refused, and a directory is opaque only if overlayfs takes it for opaque.
func FuzzOverlayAttributes(f *testing.F) {
	for _, name := range []string{"opaque", "redirect", "metacopy", "whiteout", "origin", "upper", "overlay.opaque", "verity"} {
		f.Add(name, []byte("y"))
		f.Add(name, []byte{})
	}
	f.Add("opaque", []byte("x"))
	bookkeeping := []string{"origin", "impure", "uuid", "nlink", "upper", "protattr"}
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if unix.Setxattr(path, "user.overlay."+name, value, 0) != nil {
			return // no such name, too long, or a file system without
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		opaque, err := OverlayAttributes(file)
		escaped := strings.HasPrefix(name, "overlay.")
		if opaque != (name == "opaque" && string(value) == "y") {
			t.Fatalf("with %q = %q it counts as opaque: %t, %v", name, value, opaque, err)
		}
		if err == nil && !opaque && !escaped && !slices.Contains(bookkeeping, name) {
			t.Fatalf("%q = %q is accepted", name, value)
		}
	})
}
