package hostile_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// A directory that is removed while it is open has no names, and that is no
// error.
func TestNamesOfARemovedDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dir")
	for _, most := range []int{-1, 2} {
		must(t, os.Mkdir(path, 0o700))
		names, entries, control := open(t, path), open(t, path), open(t, path)
		must(t, os.Remove(path))
		if got, err := hostile.Names(names, most); err != nil || len(got) > 0 {
			t.Errorf("names: %q, %v", got, err)
		}
		if got, err := hostile.Entries(entries, most); err != nil || len(got) > 0 {
			t.Errorf("entries: %v, %v", got, err)
		}
		if _, err := control.Readdirnames(most); runtime.GOOS == "linux" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the kernel answers %v: this test sees nothing", err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		must(t, os.Mkdir(filepath.Join(path, name), 0o700))
	}
	dir := open(t, path)
	count := 0
	for _, want := range []int{2, 1, 0, 0} {
		got, err := hostile.Names(dir, 2)
		if err != nil || len(got) != want {
			t.Errorf("%q, %v: want %d", got, err, want)
		}
		count += len(got)
	}
	if count != 3 {
		t.Errorf("%d names", count)
	}
	if got, err := hostile.Entries(open(t, path), 0); err != nil || len(got) != 3 || !got[0].IsDir() {
		t.Errorf("%v, %v", got, err)
	}
	file := filepath.Join(path, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if got, err := hostile.Names(open(t, file), -1); err == nil {
		t.Errorf("a file has the names %q", got)
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
