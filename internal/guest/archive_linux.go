package guest

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// pack sends a file or a directory as a tar stream.
func (g *guest) pack(x *exchange) (wire.Empty, error) {
	root, err := g.path(x.request.Path)
	if err != nil {
		return wire.Empty{}, err
	}
	info, err := os.Stat(root) // the named file is meant, even through a link
	if err != nil {
		return wire.Empty{}, wrap(err, "cannot copy %q", root)
	}
	pieces := bufio.NewWriterSize(frames{x.out}, piece) // many small files share a frame
	archive := tar.NewWriter(pieces)
	if info.IsDir() {
		err = packTree(archive, root)
	} else if packable(info) {
		err = packOne(archive, root, filepath.Base(root), info)
	} else {
		err = fault.New(fault.Invalid, "not a file or a directory")
	}
	if err := errors.Join(err, closeIf(archive, err), pieces.Flush()); err != nil {
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

// packable leaves out files without content: sockets, pipes and devices.
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
	// The owner inside means nothing outside.
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
