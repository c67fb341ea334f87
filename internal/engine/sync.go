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
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// SyncRequest copies files of the checkout into a sandbox that is there.
type SyncRequest struct {
	Place
	Paths   []string // from the top of the checkout; none means all
	Exclude []string // patterns as rsync reads them
	Delete  bool     // files that the checkout does not have
	DryRun  bool
	Message string
	Each    func(SyncedFile) // is told of every file, before it is copied
}

// Sync brings files of the checkout into a sandbox, committed or not, and makes
// one step of it. Ignored and hidden files come only where they are named.
func (e *Engine) Sync(ctx context.Context, request SyncRequest) (result SyncResult, made *sandbox.Iteration, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return result, nil, err
	}
	repo, err := git.Open(ctx, request.Dir)
	if err != nil {
		return result, nil, err
	}
	tip, err := e.present(ctx, p)
	if err != nil {
		return result, nil, err
	}
	plan, err := landing.PlanForth(ctx, repo, tip, landing.ForthWants{Paths: request.Paths, Exclude: request.Exclude, Delete: request.Delete})
	if err != nil {
		return result, nil, err
	}
	for _, name := range plan.Deletes {
		result.Files = append(result.Files, SyncedFile{name, "delete"})
	}
	for _, name := range plan.Copies {
		result.Files = append(result.Files, SyncedFile{name, "write"})
	}
	result.Notes = p.notes
	if len(result.Files) == 0 {
		if err := syncsSomething(ctx, repo, []string{tip}, request.Paths); err != nil {
			return result, nil, err
		}
	}
	if request.DryRun || len(result.Files) == 0 {
		return result, nil, nil
	}
	ctx, call, err := e.recordIn(ctx, p, "sync", map[string]any{"paths": request.Paths, "delete": request.Delete})
	if err != nil {
		return result, nil, err
	}
	defer func() { err = call.end(commitOf(made), nil, err) }()
	defer e.busy("copying " + counted(len(result.Files), "file"))()
	made, result.Notes, err = e.change(ctx, p, "sync", "sync "+counted(len(result.Files), "file"), request.Message, func(stream wire.Stream) error {
		if request.Each != nil {
			for _, file := range result.Files {
				request.Each(file)
			}
		}
		return e.carrySync(ctx, p, repo, stream, plan)
	})
	return result, made, err
}

// syncsSomething fails where a path exists nowhere: nothing to copy is then a
// mistyped path.
func syncsSomething(ctx context.Context, repo *git.Repository, commits, paths []string) error {
	missing, err := landing.Missing(ctx, repo, commits, paths)
	if err == nil && missing != "" {
		err = fault.New(fault.NotFound, "cannot sync %q: neither the checkout nor the sandbox has it", missing).
			WithHint("git status --short")
	}
	return err
}

// carrySync deletes first: a file may become a directory.
func (e *Engine) carrySync(ctx context.Context, p *place, repo *git.Repository, stream wire.Stream, plan landing.Forth) error {
	if len(plan.Deletes) > 0 {
		var paths [][]byte
		for _, name := range plan.Deletes {
			paths = append(paths, []byte(name))
		}
		other, err := p.dial(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(wire.Remove(ctx, other, paths), other.Close()); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(repo.Top)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot open %q", repo.Top)
	}
	defer root.Close()
	return sendArchive(ctx, stream, ".", func(w io.Writer) error { return archiveFiles(w, root, plan.Copies) })
}

// archiveFiles writes files and links of the checkout as a tar stream. No link in
// a path leads out of it.
func archiveFiles(w io.Writer, root *os.Root, names []string) error {
	archive := tar.NewWriter(w)
	// The directory of the file before stays open, as files of one directory follow
	// each other.
	at, dir := ".", root
	leave := func() {
		if dir != root {
			_ = dir.Close() // only looked up
		}
	}
	defer func() { leave() }()
	for _, name := range names {
		parent, base := path.Dir(name), path.Base(name)
		if parent != at {
			leave()
			at, dir = ".", root
			if parent != "." {
				below, err := root.OpenRoot(parent)
				if errors.Is(err, fs.ErrNotExist) {
					continue // gone since it was compared
				}
				if err != nil {
					return fault.Wrap(fault.Unavailable, err, "cannot copy %q", name)
				}
				at, dir = parent, below
			}
		}
		info, err := dir.Lstat(base)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		link := ""
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			link, err = dir.Readlink(base)
		}
		var header *tar.Header
		if err == nil {
			header, err = tar.FileInfoHeader(info, link)
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot copy %q", name)
		}
		header.Name, header.Uid, header.Gid, header.Uname, header.Gname = name, 0, 0, "", ""
		header.Format = tar.FormatPAX
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		f, err := dir.Open(base)
		if err == nil {
			_, err = io.Copy(archive, io.LimitReader(f, info.Size()))
			err = errors.Join(err, f.Close(), archive.Flush())
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot copy %q", name)
		}
	}
	return archive.Close()
}
