package engine

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Read copies a file of the sandbox to w.
func (e *Engine) Read(ctx context.Context, dir, name, file string, w io.Writer) error {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return err
	}
	defer e.tell(p)
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = wire.Read(ctx, stream, []byte(file), 0, 0, w)
	return err
}

// Write replaces one file of the sandbox and commits.
func (e *Engine) Write(ctx context.Context, request WriteRequest) (made *sandbox.Iteration, notes []string, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return nil, nil, err
	}
	ctx, call, err := e.recordIn(ctx, p, "write", map[string]any{"path": request.Path, "message": request.Message})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = call.end(commitOf(made), nil, err) }()
	return e.change(ctx, p, "write", "write "+request.Path, request.Message, func(stream wire.Stream) error {
		if request.Append {
			_, err := wire.Append(ctx, stream, []byte(request.Path), request.Content)
			return err
		}
		if !request.Guarded {
			_, err := wire.Write(ctx, stream, []byte(request.Path), uint32(request.Mode.Perm()), request.Content)
			return err
		}
		_, err := wire.PutFile(ctx, stream, wire.PutRequest{
			Path: []byte(request.Path), Mode: uint32(request.Mode.Perm()), Visible: request.Visible, Expect: request.Expect, Content: request.Content,
		})
		return err
	})
}

// Copy copies files between host and sandbox, or between two sandboxes; files
// that enter a sandbox are committed.
func (e *Engine) Copy(ctx context.Context, request CopyRequest) (made *sandbox.Iteration, notes []string, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return nil, nil, err
	}
	ctx, call, err := e.recordIn(ctx, p, "cp", map[string]any{
		"inside": request.Inside, "outside": request.Outside, "to_host": request.ToHost, "message": request.Message, "from": request.From,
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = call.end(commitOf(made), nil, err) }()
	if request.ToHost {
		err := e.copyOut(ctx, p, request)
		return nil, p.notes, err
	}
	if request.From != "" || request.Stdin != nil {
		return e.copyIn(ctx, p, request)
	}
	target, rename := request.Inside, ""
	info, err := os.Stat(request.Outside)
	if err != nil {
		return nil, nil, fault.Wrap(fault.NotFound, err, "cannot copy %q", request.Outside)
	}
	// As with cp: a file copied to a name that does not end in a slash gets
	// that name; a directory becomes that directory.
	if !info.IsDir() && !strings.HasSuffix(target, "/") && target != "" {
		target, rename = path.Split(target)
		if target == "" {
			target = "."
		}
	}
	what := fmt.Sprintf("cp %s to %s", filepath.Base(request.Outside), request.Inside)
	defer e.busy("copying " + filepath.Base(request.Outside))()
	return e.change(ctx, p, "cp", what, request.Message, func(stream wire.Stream) error {
		return sendArchive(ctx, stream, target, func(w io.Writer) error { return archiveOf(w, request.Outside, rename) })
	})
}

// change is one iteration without a command: do, then commit.
func (e *Engine) change(ctx context.Context, p *place, kind, what, message string, do func(wire.Stream) error) (*sandbox.Iteration, []string, error) {
	if err := e.recover(ctx, p); err != nil {
		return nil, nil, err
	}
	e.catchUp(ctx, p, false)
	secrets := e.secretsOf(ctx)
	what, message = secrets.Tokens(what), secrets.Tokens(message)
	cycle, stream, err := e.beginCycle(ctx, p, kind, what, message, false)
	if cycle == nil {
		return nil, nil, err
	}
	if err != nil {
		return nil, p.notes, errors.Join(err, e.endCycle(ctx, p, cycle, wire.Exit{}, err))
	}
	iteration := &sandbox.Iteration{Cycle: cycle.ID, Kind: kind, Message: firstLine(message, what), StartedAt: time.Now()}
	err = func() error {
		defer stream.Close()
		if err := do(stream); err != nil {
			return err
		}
		if err := e.advance(ctx, p, cycle, sandbox.PostProcessing); err != nil {
			return err
		}
		iteration.Duration = time.Since(iteration.StartedAt)
		_, notes, err := e.commit(context.WithoutCancel(ctx), p, iteration, commitOptions{})
		p.note(notes...)
		return err
	}()
	if err = errors.Join(err, e.endCycle(ctx, p, cycle, wire.Exit{}, err)); err != nil {
		return nil, p.notes, err
	}
	if kind != "rewind" { // which has kept what was there
		e.snapshotAfter(context.WithoutCancel(ctx), p, sandbox.SnapshotIteration)
	}
	return iteration, p.notes, nil
}

// archiveOf writes a file or a directory of the host as a tar stream. Links
// are copied as links.
func archiveOf(w io.Writer, source, rename string) error {
	archive := tar.NewWriter(w)
	root := filepath.Clean(source)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(file)
		if file == root {
			info, err = os.Stat(file) // a link named by the user is followed
		}
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
			return nil // sockets, pipes and devices are not copied
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(file); err != nil {
				return err
			}
		}
		header, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		header.Name = filepath.ToSlash(relative)
		if relative == "." && !info.IsDir() {
			header.Name = filepath.Base(root)
			if rename != "" {
				header.Name = rename
			}
		}
		if info.IsDir() {
			header.Name += "/"
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		return copyFile(archive, file)
	})
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot copy %q", source)
	}
	return archive.Close()
}

func copyFile(w io.Writer, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return errors.Join(err, file.Close())
}

// extract writes a tar stream from a sandbox below target on the host. Names and
// links in it are hostile: every path is opened inside an os.Root, so that neither
// ".." nor a link planted a moment ago leads out.
func extract(r io.Reader, target, base string) error {
	archive := tar.NewReader(r)
	header, err := archive.Next()
	if err != nil {
		return wrapExtract(err)
	}
	parent, rename := target, ""
	if header.Typeflag != tar.TypeDir {
		if info, err := os.Stat(target); err == nil && info.IsDir() {
			rename = base
		} else {
			parent, rename = filepath.Split(target)
			if parent == "" {
				parent = "."
			}
		}
		if rename == "" || rename == "." || rename == ".." {
			return fault.New(fault.Invalid, "cannot copy to %q: it is not a file name", target)
		}
	} else if info, err := os.Stat(target); err == nil && info.IsDir() && base != "." && base != "/" {
		parent = filepath.Join(target, base)
	}
	if header.Typeflag == tar.TypeDir {
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return wrapExtract(err)
		}
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return wrapExtract(err)
	}
	defer root.Close()
	space, err := newRoom(root)
	if err != nil {
		return wrapExtract(err)
	}
	defer space.dir.Close()
	for ; err == nil; header, err = archive.Next() {
		if err := space.take(header); err != nil {
			return wrapExtract(err)
		}
		name := path.Clean(header.Name)
		if rename != "" {
			name = rename
		}
		if err := writeEntry(root, name, header, archive); err != nil {
			return wrapExtract(err)
		}
	}
	if !errors.Is(err, io.EOF) {
		return wrapExtract(err)
	}
	return nil
}

func wrapExtract(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "cannot copy out of the sandbox")
}

// writeEntry writes one entry. Set-user-id bits never leave a sandbox.
func writeEntry(root *os.Root, name string, header *tar.Header, content io.Reader) error {
	mode := fs.FileMode(header.Mode).Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		if name == "." {
			return nil
		}
		return root.MkdirAll(name, mode|0o700)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		return errors.Join(copySparse(file, content), file.Close())
	}
	return nil
}
