package frozen

import (
	"archive/tar"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// longest bounds a path in an archive: PATH_MAX of Linux.
const longest = 4096

// entries calls do for each entry of an archive, which may come from anywhere. It
// fails for one that Unpack refuses, and for an archive that is endless.
func entries(archive *tar.Reader, do func(h *tar.Header, name string) error) error {
	var size int64
	for count := 1; ; count++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot read the archive")
		}
		if count > mostEntries {
			return fault.New(fault.Denied, "cannot unpack more than %d files", mostEntries)
		}
		name, err := check(header)
		if err != nil {
			return err
		}
		if size += header.Size; header.Size < 0 || size > mostBytes {
			return fault.New(fault.Denied, "cannot unpack more than %d bytes", int64(mostBytes))
		}
		if err := do(header, name); err != nil {
			return err
		}
	}
}

// check refuses entries that no golden holds.
func check(h *tar.Header) (name string, err error) {
	refuse := func(why string) (string, error) {
		return "", fault.New(fault.Denied, "cannot import a golden with %q: %s", h.Name, why)
	}
	name = path.Clean(h.Name)
	part, below, _ := splitPart(name)
	switch {
	case len(h.Name) > longest || strings.ContainsRune(h.Name, 0):
		return refuse("its name cannot be used")
	case path.IsAbs(h.Name) || name != strings.TrimSuffix(h.Name, "/") || part == "" && name != caches:
		return refuse("it leads out of the layer")
	case below == "" && h.Typeflag != tar.TypeDir:
		return refuse("it is not a directory")
	case h.Mode&0o6000 != 0:
		return refuse("it has a set-id bit")
	}
	for key := range h.PAXRecords {
		if strings.Contains(key, "xattr") {
			return refuse("it has the extended attribute " + key)
		}
	}
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeReg, tar.TypeSymlink:
	case tar.TypeLink:
		target := path.Clean(h.Linkname)
		if in, _, _ := splitPart(target); in != part || target != h.Linkname {
			return refuse("it is a link out of its part of the layer")
		}
	default:
		return refuse("it is not a directory, regular file or link")
	}
	return name, nil
}

// CopyArchive writes the rest of an archive, as Pack writes it, to another. The first
// may come from anywhere: an entry that Unpack refuses is refused, and only what a
// layer holds is taken over of the others.
func CopyArchive(to *tar.Writer, from *tar.Reader) error {
	return entries(from, func(h *tar.Header, _ string) error {
		clean := &tar.Header{Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Mode: h.Mode & 0o1777, ModTime: h.ModTime, Format: tar.FormatPAX}
		if h.Typeflag == tar.TypeReg {
			clean.Size = h.Size
		}
		err := to.WriteHeader(clean)
		if err == nil && h.Typeflag == tar.TypeReg {
			_, err = io.Copy(to, from)
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot write the archive")
		}
		return nil
	})
}
