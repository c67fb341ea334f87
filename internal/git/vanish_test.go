package git_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// A .keep left by a git fast-import goes, so that the same pack can be stored;
// the human's, and those that a running one may have made, stay.
func TestDropKeeps(t *testing.T) {
	dir := gittest.Repository(t)
	r := gittest.Open(t, dir)
	packs := filepath.Join(r.CommonDir, "objects", "pack")
	const old = time.Minute
	for name, c := range map[string]struct {
		text string
		pack bool
		age  time.Duration
	}{
		"pack-alone":     {text: "fast-import", age: old},
		"pack-left":      {text: "fast-import", pack: true, age: old},
		"pack-young":     {text: "fast-import", pack: true},
		"pack-of-humans": {text: "mine", pack: true, age: old},
	} {
		keep := filepath.Join(packs, name+".keep")
		if err := os.WriteFile(keep, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-c.age)
		if err := os.Chtimes(keep, when, when); err != nil {
			t.Fatal(err)
		}
		if c.pack {
			if err := os.WriteFile(filepath.Join(packs, name+".pack"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.DropKeeps()
	left, err := filepath.Glob(filepath.Join(packs, "*.keep"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range left {
		left[n] = filepath.Base(left[n])
	}
	if want := []string{"pack-of-humans.keep", "pack-young.keep"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}
