package process_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// Files of every size read as with os.ReadFile, and so do errors.
func TestReadAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"empty": {}, "record": []byte("{}\n"), "large": bytes.Repeat([]byte("x"), 2<<20),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := process.ReadAtOnce(path); err != nil || !bytes.Equal(content, got) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(content))
		}
	}
	if _, err := process.ReadAtOnce(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	_, want := os.ReadFile(dir)
	if _, err := process.ReadAtOnce(dir); err == nil || err.Error() != want.Error() {
		t.Errorf("a directory: %v, want %v", err, want)
	}
}
