package guest

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// pack sends a file or a directory as a tar stream.
func (g *guest) pack(x *exchange) (wire.Empty, error) {
	root, err := g.path(x.request.Path)
	if err != nil {
		return wire.Empty{}, err
	}
	info, err := os.Stat(root) // what was named is meant, even through a link
	if err != nil {
		return wire.Empty{}, wrap(err, "cannot copy %q", root)
	}
	archive := tar.NewWriter(frames{x.out})
	if info.IsDir() {
		err = packTree(archive, root)
	} else if packable(info) {
		err = packOne(archive, root, filepath.Base(root), info)
	} else {
		err = fault.New(fault.Invalid, "not a file or a directory")
	}
	if err := errors.Join(err, closeIf(archive, err)); err != nil {
		return wire.Empty{}, wrap(err, "cannot copy %q", root)
	}
	return wire.Empty{}, nil
}

// closeIf ends the archive only when it is whole: a broken one must not look
// complete.
func closeIf(archive *tar.Writer, err error) error {
	if err != nil {
		return nil
	}
	return archive.Close()
}

func packTree(archive *tar.Writer, root string) error {
	// WalkDir would not enter a link to a directory.
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	return filepath.WalkDir(real, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since it was listed
		}
		if err != nil || !packable(info) {
			return err
		}
		name, err := filepath.Rel(real, at)
		if err != nil {
			return err
		}
		return packOne(archive, at, name, info)
	})
}

// packable leaves out what is no content: sockets, pipes and devices.
func packable(info fs.FileInfo) bool {
	return info.Mode().IsRegular() || info.IsDir() || info.Mode()&fs.ModeSymlink != 0
}

func packOne(archive *tar.Writer, at, name string, info fs.FileInfo) error {
	link := ""
	var content *os.File
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		var err error
		if link, err = os.Readlink(at); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		var err error
		if content, info, err = proc.OpenRegular(at); err != nil {
			return err
		}
		defer content.Close()
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = name
	if info.IsDir() {
		header.Name += "/"
	}
	// Who owns it inside means nothing outside.
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	header.AccessTime, header.ChangeTime = time.Time{}, time.Time{}
	header.Format = tar.FormatPAX // names of any length, times in full
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if content == nil {
		return nil
	}
	// A file that grows is cut at the size it had; one that shrinks fails.
	_, err = io.Copy(archive, io.LimitReader(struct{ io.Reader }{content}, header.Size))
	if err == nil {
		err = archive.Flush()
	}
	return err
}

// unpack extracts a tar stream below a directory. os.Root keeps it there,
// whatever names and links the stream or the directory holds.
func (g *guest) unpack(x *exchange) (wire.Empty, error) {
	into, err := g.path(x.request.Path)
	if err != nil {
		return wire.Empty{}, err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return wire.Empty{}, wrap(err, "cannot make %q", into)
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return wire.Empty{}, wrap(err, "cannot open %q", into)
	}
	defer root.Close()
	in := &incoming{r: x.in}
	if err := extract(root, tar.NewReader(in)); err != nil {
		return wire.Empty{}, wrap(err, "cannot copy into %q", into)
	}
	// The stream goes on after the archive's end mark: tar pads its blocks.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return wire.Empty{}, fault.Wrap(fault.Unavailable, err, "cannot copy into %q", into)
	}
	return wire.Empty{}, nil
}

// extract makes every entry. Directories get their modes and times last: they
// may be read-only, and each entry below changes the time.
func extract(root *os.Root, archive *tar.Reader) error {
	var directories []*tar.Header
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot read the archive")
		}
		if header.Name, err = inside(header.Name); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			directories = append(directories, header)
		}
		if err := extractOne(root, header, archive); err != nil {
			return wrap(err, "cannot make %q", header.Name)
		}
	}
	for i := len(directories) - 1; i >= 0; i-- {
		d := directories[i]
		if err := errors.Join(root.Chmod(d.Name, fs.FileMode(d.Mode).Perm()), root.Chtimes(d.Name, time.Time{}, d.ModTime)); err != nil {
			return wrap(err, "cannot make %q", d.Name)
		}
	}
	return nil
}

// inside checks a name of the archive.
func inside(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fault.New(fault.Invalid, "the archive's %q leaves the target", name)
	}
	return clean, nil
}

func extractOne(root *os.Root, header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeDir {
		if err := root.MkdirAll(header.Name, 0o755); err != nil {
			return err
		}
		return root.Chmod(header.Name, 0o700|fs.FileMode(header.Mode).Perm())
	}
	if err := root.MkdirAll(path.Dir(header.Name), 0o755); err != nil {
		return err
	}
	// What stands there is replaced, never written through: it may be a link.
	if info, err := root.Lstat(header.Name); err == nil {
		if info.IsDir() {
			return unix.EISDIR
		}
		if err := root.Remove(header.Name); err != nil {
			return err
		}
	}
	switch header.Typeflag {
	case tar.TypeReg:
		return extractFile(root, header, content)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, header.Name)
	case tar.TypeLink:
		to, err := inside(header.Linkname)
		if err != nil {
			return err
		}
		return root.Link(to, header.Name)
	}
	return fault.New(fault.Invalid, "neither a file, a directory nor a link")
}

func extractFile(root *os.Root, header *tar.Header, content io.Reader) error {
	f, err := root.OpenFile(header.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	err = errors.Join(err, f.Chmod(fs.FileMode(header.Mode).Perm()), f.Close())
	if err != nil {
		return err
	}
	return root.Chtimes(header.Name, time.Time{}, header.ModTime)
}
