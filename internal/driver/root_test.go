package driver_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

func TestRoot(t *testing.T) {
	for _, dir := range []string{"/state/litterbox/sandboxes/one", "/state/litterbox/trash/sandboxes/one", "/state/litterbox/trash/trash/sandboxes/one"} {
		if got := driver.Root(dir); got != "/state/litterbox" {
			t.Errorf("%s lies in %s", dir, got)
		}
	}
}

// What has left the trash is kept by nothing.
func TestKept(t *testing.T) {
	root := t.TempDir()
	var want []string
	for id, dir := range map[string]string{"alive": "", "deleted": "trash", "gone": "trash/trash"} {
		path := filepath.Join(root, dir, "sandboxes", id, "record")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if id != "gone" {
			want = append(want, path)
		}
		if kept, err := driver.Kept(root, id); err != nil || kept != (id != "gone") {
			t.Errorf("%s is kept: %t, %v", id, kept, err)
		}
	}
	slices.Sort(want)
	got, err := driver.Records(root, "record")
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the records are %q, %v, want %q", got, err, want)
	}
}
