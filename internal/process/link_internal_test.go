package process

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A socket in a directory of any depth can be made and reached, and nothing of the
// way there stays.
func TestThroughLink(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var short string
	var listening net.Listener
	err := throughLink(dir, func(path string) (err error) {
		short = path
		listening, err = net.Listen("unix", filepath.Join(path, "socket"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	listening.(*net.UnixListener).SetUnlinkOnClose(false)
	defer listening.Close()
	if len(short) > longest {
		t.Errorf("%q is long", short)
	}
	if _, err := os.Lstat(filepath.Dir(short)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link stays: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "socket")); err != nil {
		t.Errorf("the socket is elsewhere: %v", err)
	}
	err = throughLink(dir, func(path string) error {
		conn, err := net.Dial("unix", filepath.Join(path, "socket"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		t.Error(err)
	}
	said := errors.New("said")
	if err := throughLink("/tmp", func(path string) error {
		if path != "/tmp" {
			t.Errorf("%q", path)
		}
		return said
	}); !errors.Is(err, said) {
		t.Error(err)
	}
}
