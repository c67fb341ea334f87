package landing

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// entry is one file of a tree.
type entry struct {
	mode uint32
	oid  string
	path string
}

// indexInfo is an entry as git update-index -z --index-info reads it; a mode of 0
// removes the path.
func (e entry) indexInfo() string {
	if e.mode == 0 {
		return fmt.Sprintf("0 %s\t%s\x00", strings.Repeat("0", len(e.oid)), e.path)
	}
	return fmt.Sprintf("%06o %s\t%s\x00", e.mode, e.oid, e.path)
}

// LayOut writes the files of a commit, or those at and below one path of it, as
// read-only files for the user's own programs and returns their directory. It is
// in scratch, which is replaced and which the caller removes. A symbolic link
// becomes a file that holds its target: a program that followed the link would
// show a file of this machine. Submodules are left out. No filter runs.
func LayOut(ctx context.Context, r *git.Repository, scratch, commit, below string) (string, error) {
	if err := git.CheckOids(commit); err != nil {
		return "", err
	}
	listing := r.Command("ls-tree", "-r", "-z", "--full-tree", commit)
	if below != "" {
		listing.Args = append(listing.Args, "--", below)
		listing.Env = append(listing.Env, "GIT_LITERAL_PATHSPECS=1")
	}
	out, err := listing.Output(ctx)
	if err != nil {
		return "", fault.Wrap("", err, "cannot list the files of %s", commit)
	}
	var entries []entry
	for record := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		about, path, _ := strings.Cut(string(record), "\t")
		if f := strings.Fields(about); len(f) == 3 && f[1] == "blob" {
			entries = append(entries, entry{git.Octal(f[0]), f[2], path})
		}
	}
	copies, err := makeStage(ctx, r, scratch, commit)
	if err != nil {
		return "", err
	}
	return filepath.Join(scratch, "tree", "files"), layOut(ctx, copies, scratch, "files", entries)
}

// layOut writes entries as read-only files into a directory of that name in the
// work tree of a stage. The index with them is index of the same stage.
func layOut(ctx context.Context, copies func(...string) git.Command, scratch, name string, entries []entry) error {
	var list strings.Builder
	for _, one := range entries {
		list.WriteString(one.indexInfo())
	}
	run := func(c git.Command) error {
		c.Env = append(c.Env, "GIT_INDEX_FILE="+indexOf(scratch, name))
		c.Config = append(c.Config, "core.symlinks=false", "core.sparseCheckout=false")
		_, err := c.Output(ctx)
		return err
	}
	put := copies("update-index", "-z", "--index-info")
	put.Stdin = strings.NewReader(list.String())
	err := run(put)
	if err == nil {
		err = run(copies("checkout-index", "--all", "--force", "--prefix="+name+"/"))
	}
	dir := filepath.Join(scratch, "tree", name)
	if err == nil {
		err = os.MkdirAll(dir, 0o700) // where there are no files
	}
	if err == nil {
		err = readOnly(dir)
	}
	if err != nil {
		return fault.Wrap("", err, "cannot write files to look at into %q", scratch)
	}
	return nil
}

func indexOf(scratch, name string) string { return filepath.Join(scratch, name+".index") }

// readOnly removes write permission from the files below dir.
func readOnly(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()&0o500|0o400)
	})
}
