package guest_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// While a file arrives, the one that it replaces is still there, and no commit
// sees the part that has arrived. An archive that breaks off leaves it that
// way.
func TestUnpackKeepsWhatItReplaces(t *testing.T) {
	b := newBox(t, func(lower string) {
		write(t, filepath.Join(lower, ".git/HEAD"), "ref: refs/heads/main\n", 0o644)
		write(t, filepath.Join(lower, "d/file"), "old", 0o644)
	})
	for _, target := range []struct{ path, aside string }{{b.workspace, b.workspace + "/.git"}, {b.dir + "/home", b.dir + "/home/d"}} {
		b.sh("mkdir -p " + target.path + "/d; printf old >" + target.path + "/d/file")
		archive, feed := io.Pipe()
		w := tar.NewWriter(feed)
		broken := errors.New("cable pulled")
		go func() {
			err := w.WriteHeader(&tar.Header{Name: "d/file", Mode: 0o644, Size: 1 << 20})
			_, failed := io.WriteString(w, strings.Repeat("x", 1<<19))
			if err = errors.Join(err, failed); err != nil {
				feed.CloseWithError(err)
			}
		}()
		ended := make(chan error, 1)
		go func() { ended <- wire.Unpack(limit(t), b.open(), []byte(target.path), archive) }()
		eventually(t, "a part came", func() bool { return b.sh("find "+target.aside+" -name 'litterbox-write-*' -size +0") != "" })
		if got := b.sh("cat " + target.path + "/d/file"); got != "old" {
			t.Errorf("meanwhile the file of %s holds %q", target.path, got)
		}
		if target.path == b.workspace {
			if got := b.sh("ls -A d"); got != "file" {
				t.Errorf("beside it lies %q", got)
			}
		}
		feed.CloseWithError(broken)
		if err := <-ended; !errors.Is(err, broken) {
			t.Errorf("error %v, want the reader's own", err)
		}
		eventually(t, "the part that came is gone", func() bool {
			return b.sh("find "+target.path+" -name 'litterbox-write-*'; cat "+target.path+"/d/file") == "old"
		})
	}
}

// Entries of every kind take the place of those of every other kind, except a
// directory that is not empty.
func TestUnpackReplacesEveryKind(t *testing.T) {
	b := newBox(t, func(lower string) {
		write(t, filepath.Join(lower, ".git/HEAD"), "ref: refs/heads/main\n", 0o644)
		for _, name := range []string{"file", "file to link", "full/kept"} {
			write(t, filepath.Join(lower, name), "old", 0o644)
		}
		if err := os.Symlink("kept", filepath.Join(lower, "link to file")); err != nil {
			t.Fatal(err)
		}
	})
	b.sh("mkdir empty; printf old >twice; ln twice again; mkfifo fifo; cp twice kept")
	file := func(name string) tar.Header { return tar.Header{Name: name, Mode: 0o644, Size: 3} }
	unpack := func(all ...tar.Header) error {
		var stream bytes.Buffer
		w := tar.NewWriter(&stream)
		for _, h := range all {
			err := w.WriteHeader(&h)
			if h.Size > 0 && err == nil {
				_, err = io.WriteString(w, "new")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return wire.Unpack(limit(t), b.open(), []byte("."), &stream)
	}
	if err := unpack(
		file("file"), file("link to file"), file("empty"), file("fifo"),
		tar.Header{Name: "file to link", Typeflag: tar.TypeSymlink, Linkname: "full"},
		tar.Header{Name: "again", Typeflag: tar.TypeLink, Linkname: "twice"},
		tar.Header{Name: "kept", Typeflag: tar.TypeLink, Linkname: "file"},
	); err != nil {
		t.Fatal(err)
	}
	if err := unpack(file("full")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a file in the place of a directory that holds something: %v", err)
	}
	const want = "new new new new full old new old HEAD"
	if got := b.sh(`for each in file 'link to file' empty fifo; do cat "$each"; echo; done; readlink 'file to link'; cat again; echo; cat kept; echo; cat full/kept; echo; ls .git`); strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := b.sh("test twice -ef again && test kept -ef file && find . -name 'litterbox-write-*'"); got != "" {
		t.Errorf("left behind: %q", got)
	}
}
