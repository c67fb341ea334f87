package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// BrowseRequest names committed files of a sandbox.
type BrowseRequest struct {
	Place
	At   string // a step's number or a snapshot, or empty: the branch
	Path string // a file or directory, relative to the top; empty for all
}

// Browsed is the entry at a path of a committed tree.
type Browsed struct {
	Commit string
	IsFile bool          // Files is that file
	Files  []BrowsedFile // at or below the path
}

// BrowsedFile is one committed file.
type BrowsedFile struct {
	Path string `json:"path"`
	Mode string `json:"mode"` // git's: 100644, 100755, 120000 for a link, 160000 for a submodule
	Size int64  `json:"size"` // in bytes; -1 for a submodule

	oid string
}

// Browse lists committed files. The sandbox is not started for it.
func (e *Engine) Browse(ctx context.Context, request BrowseRequest) (Browsed, error) {
	_, found, err := e.browse(ctx, request)
	return found, err
}

func (e *Engine) browse(ctx context.Context, request BrowseRequest) (*place, Browsed, error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return nil, Browsed{}, err
	}
	defer e.tell(p)
	var found Browsed
	if request.At == "" {
		found.Commit, err = p.repo.Tip(ctx, p.record.Branch)
	} else {
		found.Commit, err = p.commitOf(request.At, "with")
	}
	if err != nil {
		return nil, found, err
	}
	at := path.Clean("/" + request.Path)[1:]
	c := p.repo.Command("ls-tree", "-r", "-l", "-z", "--full-tree", found.Commit)
	if at != "" {
		c.Args, c.Env = append(c.Args, "--", at), append(c.Env, "GIT_LITERAL_PATHSPECS=1")
	}
	out, err := c.Output(ctx)
	if err != nil {
		return nil, found, fault.Wrap("", err, "cannot list the files of sandbox %q", p.record.Name)
	}
	for record := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		about, name, ok := strings.Cut(string(record), "\t")
		f := strings.Fields(about)
		if !ok || len(f) != 4 {
			continue
		}
		size, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil { // "-", of a submodule
			size = -1
		}
		found.Files = append(found.Files, BrowsedFile{Path: name, Mode: f[0], Size: size, oid: f[2]})
	}
	found.IsFile = at != "" && len(found.Files) == 1 && found.Files[0].Path == at && found.Files[0].Size >= 0
	if len(found.Files) == 0 && at != "" {
		return nil, found, fault.New(fault.NotFound, "cannot find %q among what sandbox %q has committed", at, p.record.Name).
			WithHint("litterbox browse %s", p.record.Name)
	}
	return p, found, nil
}

// BrowseFile copies a committed file to w.
func (e *Engine) BrowseFile(ctx context.Context, request BrowseRequest, w io.Writer) error {
	p, found, err := e.browse(ctx, request)
	if err != nil {
		return err
	}
	if !found.IsFile {
		return fault.New(fault.Invalid, "cannot print %q: it is not a file", request.Path)
	}
	c := p.repo.Command("cat-file", "blob", found.Files[0].oid)
	c.Stdout = w
	if _, err := c.Output(ctx); err != nil {
		return fault.Wrap("", err, "cannot read %q", request.Path)
	}
	return nil
}

// BrowseCopy calls look with read-only copies of committed files: a directory, or
// the one named file. root is a directory above them, with none of the sandbox's
// own files. They are gone when it returns.
func (e *Engine) BrowseCopy(ctx context.Context, request BrowseRequest, look func(root, path string) error) (err error) {
	p, found, err := e.browse(ctx, request)
	if err != nil {
		return err
	}
	_, risks, err := landing.ChangedAgainst(ctx, p.repo, p.record.From(), found.Commit)
	if err != nil {
		return err
	}
	e.warn(risks) // before an editor opens them
	dir, done, err := p.scratch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	at := path.Clean("/" + request.Path)[1:]
	files, err := landing.LayOut(ctx, p.repo, filepath.Join(dir, "stage"), found.Commit, at)
	if err != nil {
		return err
	}
	return look(filepath.Dir(files), filepath.Join(files, filepath.FromSlash(at)))
}

// GitCommand gives a program that git is configured to use: "GIT_PAGER" or
// "GIT_EDITOR", as a line for sh.
func (e *Engine) GitCommand(ctx context.Context, dir, which string) (string, error) {
	c := git.Command{Dir: dir, Plain: true, Args: []string{"var", which}}
	line, err := c.Line(ctx)
	if err != nil {
		return "", fault.Wrap("", err, "cannot find what git uses as %s", which)
	}
	return line, nil
}
