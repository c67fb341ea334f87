// Package local is the files of a sandbox on this disk: the directory that receives
// its changes, as the upper one of an overlay or with a copy of everything, and its
// home. It knows where they are below the sandbox's state directory; everything in
// them is the sandbox's, and only packages hostile and layer open it.
//
// Start reading at [Files].
package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Files are those of one sandbox. They implement [workspace.Workspace].
type Files struct {
	Dir    string   // the sandbox's state directory
	Frozen []string // what was written before, as layers below Upper that no longer change, topmost first
	Layers []string // those of the repository's files, topmost first
	Copy   bool     // the workspace is a copy; Layers are not asked
}

// Upper returns the directory that receives every change.
func (f Files) Upper() string { return filepath.Join(f.Dir, "upper") }

// Work returns the scratch directory of the overlay.
func (f Files) Work() string { return filepath.Join(f.Dir, "work") }

// Copied returns the file that records the files of a copy as they were at first.
func (f Files) Copied() string { return filepath.Join(f.Dir, "copied") }

func (f Files) home() string { return filepath.Join(f.Dir, "home") }

// Base implements workspace.Workspace.
func (f Files) Base() workspace.Base {
	if f.Copy {
		return workspace.Base{Copied: f.Copied()}
	}
	return workspace.Base{Layers: f.Layers}
}

// Where implements workspace.Workspace.
func (f Files) Where() string { return f.Upper() }

// Exists implements workspace.Workspace.
func (f Files) Exists(context.Context) (bool, error) {
	_, err := os.Lstat(f.Upper())
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err == nil, nil
	}
	return false, workspace.Unknown(err)
}

// Touched implements workspace.Workspace. In a copy everything may have been.
func (f Files) Touched(_ context.Context, paths ...string) (bool, error) {
	if f.Copy {
		return true, nil
	}
	for _, dir := range append([]string{f.Upper()}, f.Frozen...) {
		if touched, err := touchedIn(dir, paths); touched || err != nil {
			return touched, err
		}
	}
	return false, nil
}

// frozen returns what was written before, as layers. An unreadable record of
// it shows in every commit.
func (f Files) frozen() frozen.Layers {
	r, err := frozen.Read(f.Dir)
	if err != nil {
		return frozen.Layers{}
	}
	return frozen.LayersOf(f.Dir, r.Stack)
}

func touchedIn(dir string, paths []string) (bool, error) {
	upper, err := hostile.Root(dir, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, workspace.Unknown(err)
	}
	for _, path := range paths {
		if _, err := upper.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return true, upper.Close()
		}
	}
	return false, upper.Close()
}

// Size implements workspace.Workspace.
func (f Files) Size(context.Context) (workspace.Size, error) {
	seen := hostile.Counted{}
	return workspace.Size{Changes: seen.Size(f.Upper()), Home: seen.Size(f.home())}, nil
}

// Look walks the directories that receive changes for the newest change, without
// reading any file. It leaves out directories for which skip returns true.
func (f Files) Look(after time.Time, skip func(name string) bool) hostile.Changes {
	return hostile.Look(f.Upper(), after, skip)
}

// Home implements workspace.Workspace.
func (f Files) Home(_ context.Context, dir string) (*os.Root, error) {
	for _, home := range append([]string{f.home()}, f.frozen().Home...) {
		root, err := hostile.Root(home, dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return root, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
}
