package layer

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// CheckOutPaths writes some files of a commit below dir, which it makes, as a
// checkout would: with git's own conversions, and without anyone's filters,
// hooks and configuration.
func CheckOutPaths(ctx context.Context, r *git.Repository, commit string, paths []string, dir string) error {
	if err := git.CheckOids(commit); err != nil {
		return err
	}
	conversion, err := ConversionOf(r)
	if err != nil {
		return err
	}
	view, files := filepath.Join(dir, "git"), filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", files)
	}
	if err := MakeView(r, view, conversion); err != nil {
		return err
	}
	run := func(stdin string, args ...string) error {
		c := git.Command{
			GitDir: view, Dir: files, Private: true, Args: args, Stdin: strings.NewReader(stdin),
			Env:    []string{"GIT_WORK_TREE=" + files, "GIT_INDEX_FILE=" + filepath.Join(dir, "index")},
			Config: []string{"core.symlinks=true", "core.fileMode=true"},
		}
		_, err := c.Output(ctx)
		return err
	}
	if err := run("", "read-tree", commit); err != nil {
		return fault.Wrap("", err, "cannot read the files of %s", commit)
	}
	if len(paths) == 0 {
		return nil
	}
	if err := run(strings.Join(paths, "\x00")+"\x00", "checkout-index", "-f", "-q", "-z", "--stdin"); err != nil {
		return fault.Wrap("", err, "cannot write the files of %s", commit)
	}
	return nil
}
