package engine

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// bringUncommitted makes the checkout's uncommitted tracked changes the first
// commit of a new sandbox. Files go in as they are in the checkout; git converts
// line ends and encodings when they are committed.
func (e *Engine) bringUncommitted(ctx context.Context, p *place) error {
	changed, gone, err := p.repo.Uncommitted(ctx)
	if err != nil {
		return err
	}
	if len(changed)+len(gone) == 0 {
		p.note("there are no uncommitted changes to bring")
		return nil
	}
	_, _, err = e.change(ctx, p, "dirty", "uncommitted changes of the checkout", "", func(stream wire.Stream) error {
		// Deletions go first: a file may stand where a directory was.
		if err := e.removeInside(ctx, p, gone); err != nil {
			return err
		}
		return sendFiles(ctx, stream, p.record.Repository, changed)
	})
	return err
}

// removeInside deletes paths of the workspace, in portions that fit a frame.
func (e *Engine) removeInside(ctx context.Context, p *place, paths []string) error {
	const portion = wire.MaxFrame / 4 // base64 and quotes make a path longer
	for len(paths) > 0 {
		var batch [][]byte
		for size := 0; len(paths) > 0 && size+len(paths[0]) < portion; paths = paths[1:] {
			batch = append(batch, []byte(paths[0]))
			size += len(paths[0]) + 16
		}
		stream, err := p.dial(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(wire.Remove(ctx, stream, batch), stream.Close()); err != nil {
			return err
		}
	}
	return nil
}

// bringIgnored copies the files that the configuration names in `copy` from
// the checkout. They are ignored by git, inside as outside, so no commit ever
// holds them.
func (e *Engine) bringIgnored(ctx context.Context, p *place) error {
	found, err := matching(p.record.Repository, p.config.Copy)
	if err != nil {
		return err
	}
	ignored, err := p.repo.Ignored(ctx, found)
	if err != nil {
		return err
	}
	var wanted []string
	for _, name := range found {
		if ignored[name] {
			wanted = append(wanted, name)
		}
	}
	if out := len(found) - len(wanted); out > 0 {
		p.note("left out, because git does not ignore them and they would be committed: " + counted(out, "file") + " that copy names")
	}
	if len(wanted) == 0 {
		if len(found) == 0 {
			p.note("copy names no file that exists in the checkout")
		}
		return nil
	}
	stream, err := p.dial(ctx)
	if err != nil {
		return fault.Wrap("", err, "cannot copy files into sandbox %q", p.record.Name)
	}
	defer stream.Close()
	return sendFiles(ctx, stream, p.record.Repository, wanted)
}

// matching lists the files and links of top that the patterns name, and those
// below the directories that they name.
func matching(top string, patterns []string) ([]string, error) {
	cannot := func(err error) error {
		return fault.Wrap(fault.Unavailable, err, "cannot read the files that copy names")
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, cannot(err)
	}
	defer root.Close()
	var found []string
	known := map[string]bool{}
	add := func(name string) {
		if !known[name] {
			known[name] = true
			found = append(found, name)
		}
	}
	for _, pattern := range patterns {
		names, err := fs.Glob(root.FS(), pattern)
		if err != nil {
			return nil, cannot(err)
		}
		for _, name := range names {
			info, err := root.Lstat(name)
			if err != nil {
				return nil, cannot(err)
			}
			if !info.IsDir() {
				add(name)
				continue
			}
			err = fs.WalkDir(root.FS(), name, func(file string, entry fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				if entry.IsDir() {
					if entry.Name() == ".git" {
						return fs.SkipDir
					}
					return nil
				}
				add(file)
				return nil
			})
			if err != nil {
				return nil, cannot(err)
			}
		}
	}
	return found, nil
}

// sendFiles copies paths of the directory top to the same places of the
// workspace. Nothing is read through a link that leads out of top.
func sendFiles(ctx context.Context, stream wire.Stream, top string, paths []string) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot open %q", top)
	}
	defer root.Close()
	return sendArchive(ctx, stream, ".", func(to io.Writer) error {
		w := tar.NewWriter(to)
		for _, name := range paths {
			if err := sendFile(w, root, name); err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot copy %q", name)
			}
		}
		return w.Close()
	})
}

func sendFile(w *tar.Writer, root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone since it was listed
	}
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = root.Readlink(name); err != nil {
			return err
		}
	case !info.Mode().IsRegular():
		return nil // sockets, pipes and devices are not copied
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = path.Clean(name)
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if link != "" {
		return w.WriteHeader(header)
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	// A file that grows is cut at the size it had; one that shrinks fails.
	_, err = io.Copy(w, io.LimitReader(file, header.Size))
	return err
}
