package guest_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/sftp"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// TestFiles speaks SFTP with a guest.
func TestFiles(t *testing.T) {
	b := newBox(t, func(lower string) {
		write(t, filepath.Join(lower, "base/deep/file"), "of the base", 0o640)
		write(t, filepath.Join(lower, "script"), "old", 0o750)
	})
	b.sh("mkfifo fifo; ln -s script link; ln -s /nowhere dangling")
	stream := b.open()
	if err := wire.Files(limit(t), stream); err != nil {
		t.Fatal(err)
	}
	client, err := sftp.NewClientPipe(stream, stream)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := client.Getwd(); err != nil || at != b.workspace {
		t.Errorf("it begins in %q, %v", at, err)
	}
	for _, pipe := range []string{"fifo", "/dev/null"} {
		if f, err := client.Open(pipe); err == nil {
			t.Errorf("%s was opened", pipe)
			f.Close()
		}
	}
	// A directory of the base can be renamed, its parent too, but never to a name
	// in use.
	if err := errors.Join(client.Rename("base/deep", "base/other"), client.PosixRename("base", "moved")); err != nil {
		t.Error(err)
	}
	if err := client.Rename("script", "link"); err == nil {
		t.Error("a rename of version 3 has replaced a file")
	}
	if err := client.PosixRename("script", "link"); err != nil {
		t.Error(err)
	}
	f, err := client.OpenFile("new", os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(f, "0123456789")
	if err = errors.Join(err, f.Truncate(4), f.Chmod(0o6711), f.Close()); err != nil {
		t.Error(err)
	}
	if err := client.Chown("new", 0, 0); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("another owner: %v", err)
	}
	if to, err := client.ReadLink("dangling"); err != nil || to != "/nowhere" {
		t.Errorf("a link: %q, %v", to, err)
	}
	if err := client.RemoveDirectory("moved"); err == nil {
		t.Error("a directory with files went")
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	_, got := b.run(wire.Exec{Argv: argv("sh", "-c", "cat moved/other/file link new; stat -c ' %a %a' link new")}, nil)
	if diff := cmp.Diff(outcome{Out: "of the baseold0123 750 750\n 711 711\n"}, got); diff != "" {
		t.Error(diff)
	}
}
