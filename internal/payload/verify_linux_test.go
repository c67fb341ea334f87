package payload_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/payload"
)

// verify reports whether a program is accepted with a hash.
func verify(path, hash string) bool {
	file, err := payload.Verified(path, hash)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

// hashed is a program whose right hash is remembered, and that hash.
func hashed(t *testing.T) (path, hash string) {
	t.Helper()
	path, content := program(t, 0o755)
	sum := sha256.Sum256(content)
	hash = hex.EncodeToString(sum[:])
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if !verify(path, hash) {
			t.Fatal("the program is refused with its own hash")
		}
		if _, err := os.Stat(path + ".hashed"); err == nil {
			return path, hash
		}
		if time.Now().After(deadline) {
			t.Fatal("the hash is never remembered")
		}
	}
}

// What is remembered spares the hash: another hash is believed as long as the
// file is the same. So it must end with every change of the file.
func TestHashIsRemembered(t *testing.T) {
	t.Parallel()
	const other = "0000"
	for name, change := range map[string]func(t *testing.T, path string){
		"content, with the times put back": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteAt([]byte("x"), 100); err != nil {
				t.Fatal(err)
			}
			file.Close()
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"another file in its place": func(t *testing.T, path string) {
			_, content := program(t, 0o755)
			if err := os.WriteFile(path+".new", append(content, 0), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"what is remembered is cut off": func(t *testing.T, path string) {
			if err := os.WriteFile(path+".hashed", []byte("1 2"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"what is remembered may be written by others": func(t *testing.T, path string) {
			if err := os.Chmod(path+".hashed", 0o666); err != nil {
				t.Fatal(err)
			}
		},
		"what is remembered is a link": func(t *testing.T, path string) {
			aside := filepath.Join(filepath.Dir(path), "aside")
			if err := os.Rename(path+".hashed", aside); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(aside, path+".hashed"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, _ := hashed(t)
			if !verify(path, other) {
				t.Fatal("the hash is taken although nothing has changed: the test shows nothing")
			}
			change(t, path)
			if verify(path, other) {
				t.Error("a program that has changed, or that nothing trusted speaks for, is accepted")
			}
		})
	}
}
