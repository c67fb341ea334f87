package engine

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// copySource is where in a sandbox a copy comes from.
type copySource struct {
	path    string // a file or a directory
	pattern string // of names in that directory; empty: all of it
}

// sourceOf splits off a pattern, which only the last part of a path may be.
func sourceOf(inside string) copySource {
	dir, last := path.Split(inside)
	if !strings.ContainsAny(last, "*?[") {
		return copySource{path: inside}
	}
	if dir == "" {
		dir = "."
	}
	return copySource{path: dir, pattern: last}
}

// pack reads the source of a place as an archive with nothing in it but regular
// files, directories and links, by names below its top. The content is foreign:
// another sandbox gets it, or any program that reads it from a pipe.
func (e *Engine) pack(ctx context.Context, p *place, from copySource) (io.ReadCloser, error) {
	if _, err := path.Match(from.pattern, ""); err != nil {
		return nil, fault.New(fault.Invalid, "cannot use the pattern %q: a [ in it has no end", from.pattern)
	}
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return nil, err
	}
	packed, packing := io.Pipe()
	go func() {
		packing.CloseWithError(wire.Pack(ctx, stream, []byte(from.path), packing))
		_ = stream.Close() // it has said everything
	}()
	archive, writing := io.Pipe()
	go func() {
		err := relay(packed, writing, from)
		writing.CloseWithError(err)
		packed.CloseWithError(err)
	}()
	return archive, nil
}

// relay copies an archive that a sandbox made, entry by entry.
func relay(r io.Reader, w io.Writer, from copySource) error {
	in, out := tar.NewReader(r), tar.NewWriter(w)
	matched := from.pattern == ""
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return wrapExtract(err)
		}
		name := path.Clean(header.Name)
		if !filepath.IsLocal(name) {
			return fault.New(fault.Denied, "cannot copy %q: its name leads elsewhere", header.Name)
		}
		first, _, _ := strings.Cut(name, "/")
		if from.pattern != "" && name != "." {
			fits, err := path.Match(from.pattern, first)
			if err != nil || !fits || first[0] == '.' && from.pattern[0] != '.' {
				continue
			}
			matched = true
		}
		clean := &tar.Header{Typeflag: header.Typeflag, Name: name, Mode: int64(fs.FileMode(header.Mode).Perm()), ModTime: header.ModTime}
		switch header.Typeflag {
		case tar.TypeDir:
			clean.Name += "/"
		case tar.TypeReg:
			clean.Size = header.Size
		case tar.TypeSymlink:
			clean.Linkname = header.Linkname
		default:
			continue
		}
		if err := out.WriteHeader(clean); err != nil {
			return wrapExtract(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := io.Copy(out, in); err != nil {
				return wrapExtract(err)
			}
		}
	}
	if !matched {
		return fault.New(fault.NotFound, "cannot copy: nothing in %q matches %q", from.path, from.pattern)
	}
	if err := out.Close(); err != nil {
		return wrapExtract(err)
	}
	return nil
}

// copyOut copies from the sandbox to the host, or writes an archive.
func (e *Engine) copyOut(ctx context.Context, p *place, request CopyRequest) error {
	defer e.busy("copying " + request.Inside)()
	from := sourceOf(request.Inside)
	archive, err := e.pack(ctx, p, from)
	if err != nil {
		return err
	}
	defer archive.Close()
	if request.Stdout != nil {
		if _, err := io.Copy(request.Stdout, archive); err != nil {
			return wrapExtract(err)
		}
		return nil
	}
	base := path.Base(path.Clean(from.path))
	if from.pattern != "" {
		base = "."
	}
	return extract(archive, request.Outside, base)
}

// copyIn unpacks an archive, which another sandbox makes or which is read.
func (e *Engine) copyIn(ctx context.Context, p *place, request CopyRequest) (*sandbox.Iteration, []string, error) {
	defer e.busy("copying to " + request.Inside)()
	if request.Stdin != nil {
		return e.change(ctx, p, "cp", "cp an archive to "+request.Inside, request.Message, func(stream wire.Stream) error {
			return wire.Unpack(ctx, stream, []byte(request.Inside), request.Stdin)
		})
	}
	other, err := e.find(ctx, request.Dir, request.From)
	if err != nil {
		return nil, nil, err
	}
	if other.record.ID == p.record.ID {
		return nil, nil, fault.New(fault.Invalid, "cannot copy from sandbox %q to itself", request.From).
			WithHint("litterbox exec %s -- cp -a %s %s", request.From, quoteCommand([]string{request.Outside}), quoteCommand([]string{request.Inside}))
	}
	archive, err := e.pack(ctx, other, sourceOf(request.Outside))
	if err != nil {
		return nil, nil, err
	}
	defer archive.Close()
	what := fmt.Sprintf("cp %s of %s to %s", request.Outside, request.From, request.Inside)
	made, notes, err := e.change(ctx, p, "cp", what, request.Message, func(stream wire.Stream) error {
		return unpackAs(ctx, stream, archive, request.Inside)
	})
	return made, append(other.notes, notes...), err
}

// unpackAs unpacks an archive at a path inside: the one file of an archive that
// holds no directory gets that name unless it ends in a slash, and a directory
// becomes that directory.
func unpackAs(ctx context.Context, stream wire.Stream, archive io.Reader, target string) error {
	in := tar.NewReader(archive)
	header, err := in.Next()
	if err != nil {
		return wrapExtract(err)
	}
	if header.Typeflag != tar.TypeDir && !strings.HasSuffix(target, "/") && path.Clean(target) != "." {
		if target, header.Name = path.Split(target); target == "" {
			target = "."
		}
	}
	passed, passing := io.Pipe()
	defer passed.Close()
	go func() {
		out := tar.NewWriter(passing)
		var err error
		for ; err == nil; header, err = in.Next() {
			if err = out.WriteHeader(header); err == nil {
				_, err = io.Copy(out, in)
			}
			if err != nil {
				break
			}
		}
		if errors.Is(err, io.EOF) {
			err = out.Close()
		}
		passing.CloseWithError(err)
	}()
	return wire.Unpack(ctx, stream, []byte(target), passed)
}
