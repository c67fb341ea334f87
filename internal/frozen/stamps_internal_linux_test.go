package frozen

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStampsAreKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "box")
	b := Box{Dir: dir}
	if err := errors.Join(os.Mkdir(dir, 0o755), os.MkdirAll(b.layer("layer"), 0o755)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("d/", longestText)
	c := copies{Layer: "layer", Files: map[string]stamp{
		"upper/a":                  {1, 2, 3, 4, 5, 6},
		"home/odd \n\x00\xff name": {math.MaxUint64, math.MaxInt64, -1, 999_999_999, math.MinInt64, 0},
		long:                       {},
	}}
	b.writeCopies(c)
	got := b.readCopies()
	delete(c.Files, long) // it is copied again
	if got.Layer != c.Layer || !maps.Equal(got.Files, c.Files) {
		t.Errorf("it reads %+v, not %+v", got, c)
	}
	path := filepath.Join(dir, copiesFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := range content {
		if err := os.WriteFile(path, content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		for path, s := range b.readCopies().Files {
			if c.Files[path] != s {
				t.Errorf("cut off after %d bytes, it reads %+v for %q", size, s, path)
			}
		}
	}
	if err := os.WriteFile(path, append([]byte{7}, content...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.readCopies(); got.Files != nil {
		t.Errorf("of another version it reads %+v", got)
	}
}
