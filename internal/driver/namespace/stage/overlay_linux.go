package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// idsFD is where a trial finds the user namespace that shifts ids, if there is one.
const idsFD = 3

// PrepareTrial fills dir for a child with [VerbOverlay]. Real root gives the
// layers to inner and the rest to shifted, as in a sandbox; others pass -1.
func PrepareTrial(dir string, inner, shifted int) error {
	for name, owner := range map[string]int{
		"above": inner, "above/dir": inner, "below": inner, "below/dir": inner, "below/other": inner,
		"upper": shifted, "work": -1, "at": -1, "bench": -1,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := os.Lchown(path, owner, owner); err != nil {
			return err
		}
	}
	for _, name := range []string{"below/changed", "below/gone", "below/dir/file", "below/other/file"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("below"), 0o644); err != nil {
			return err
		}
		if err := os.Lchown(path, inner, inner); err != nil {
			return err
		}
	}
	return nil
}

// tryOverlay mounts an overlay as a sandbox would and uses every feature that
// needs the file system's help: copying up, whiteouts, opaque directories.
func tryOverlay() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	a := assembly{bench: in("bench")}
	if isNamespace(idsFD) {
		a.users = os.NewFile(idsFD, "ids")
	}
	layers, err := a.layersOf([]string{in("above"), in("below")}, true, "trial")
	if err != nil {
		return err
	}
	options := fmt.Sprintf("upperdir=%s,workdir=%s", escapeOption(in("upper")), escapeOption(in("work")))
	if err := overlay(in("at"), unix.MS_NOSUID|unix.MS_NODEV, layers, options); err != nil {
		return fmt.Errorf("an overlay cannot be mounted there: %w", err)
	}
	if err := os.Chdir(in("at")); err != nil {
		return err
	}
	if err := useOverlay(); err != nil {
		return fmt.Errorf("an overlay there does not work: %w", err)
	}
	return nil
}

func isNamespace(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

func useOverlay() error {
	err := errors.Join(
		os.WriteFile("new", []byte("new"), 0o644),
		os.WriteFile("changed", []byte("above"), 0o644),
		os.Remove("gone"),
		os.RemoveAll("dir"),
		os.Mkdir("dir", 0o755), // opaque: nothing of the layers shows
	)
	if err != nil {
		return err
	}
	left, err := os.ReadDir("dir")
	if err != nil || len(left) > 0 {
		return errors.Join(err, errors.New("a directory that was removed comes back"))
	}
	if _, err := os.Lstat("gone"); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, errors.New("a file that was removed comes back"))
	}
	if content, err := os.ReadFile("changed"); err != nil || string(content) != "above" {
		return errors.Join(err, errors.New("a changed file does not change"))
	}
	return nil
}
