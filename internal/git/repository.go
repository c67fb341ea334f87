// Package git is git by plumbing, on the host: where a repository is, its
// settings, refs and index, and git processes that read and write objects.
//
// It never runs git in or against anything that a sandbox can write. Ignore
// rules and built-in conversions are in its subpackages ignore and attribute.
// It knows nothing of drivers or records.
//
// Start reading at [Open] and [branch.Import].
package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Repository is a git repository on the host. Paths are absolute with
// symbolic links resolved. It is safe for concurrent use.
type Repository struct {
	Location
	ObjectFormat string // "sha1" or "sha256"
	Head         string // commit of HEAD
	HeadTree     string
	HeadRef      string // "refs/heads/main"; empty when HEAD is detached

	Settings func() (*Settings, error)
	spare    spare
	caller   *caller.Caller // who opened it
	View     string         // of a submodule: a git directory of ours; CommonDir lends its objects only
}

// Location says where a repository is.
type Location struct {
	Top       string // the work tree
	GitDir    string // differs from CommonDir in a linked worktree
	CommonDir string // holds objects and branches
}

// Open finds the repository that dir is in and reads HEAD. It fails with
// NotFound outside a repository, Invalid for a bare one and for an unborn
// HEAD, and Unavailable if git is missing or too old.
func Open(ctx context.Context, dir string) (*Repository, error) {
	location, plain := Locate(dir)
	if plain { // before git reads an object
		if err := checkBorrowed(ctx, location.CommonDir); err != nil {
			return nil, err
		}
	}
	// The user's configuration is needed by nearly every caller of Open; read
	// at the same time on another processor, it costs no time.
	settings := make(chan func() (*Settings, error), 1)
	go func() { settings <- ReadSettings(context.WithoutCancel(ctx), Command{Dir: dir}) }()

	out, err := Command{Dir: dir, Args: []string{
		"rev-parse", "--path-format=absolute", "--is-bare-repository", "--show-object-format", "--git-dir",
		"--git-common-dir", "--show-toplevel", "HEAD^{commit}", "HEAD^{tree}", "--symbolic-full-name", "HEAD",
	}}.Output(ctx)
	f := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	switch {
	case err != nil && ExitCode(err) < 0:
		if _, gone := os.Stat(cmp.Or(dir, ".")); errors.Is(gone, os.ErrNotExist) {
			return nil, fault.New(fault.NotFound, "cannot work in %q: there is no such directory", dir).WithHint("litterbox list --all")
		}
		return nil, err
	case len(f) > 0 && strings.HasPrefix(f[0], "--"):
		return nil, fault.New(fault.Unavailable, "cannot work with this old git").
			WithHint("install git %s or newer", oldestGit)
	case len(f) < 2:
		return nil, notRepository(dir, err)
	case f[0] == "true":
		return nil, fault.New(fault.Invalid, "cannot work in the bare repository %q: it has no work tree", f[2]).
			WithHint("git worktree add ../work && cd ../work")
	case len(f) < 5:
		return nil, fault.Wrap(fault.Invalid, err, "cannot work inside of the git directory %q", f[2]).
			WithHint("cd %s", filepath.Dir(f[2]))
	}
	r := &Repository{Location: Location{Top: f[4], GitDir: f[2], CommonDir: f[3]}, ObjectFormat: f[1]}
	if !plain {
		if err := checkBorrowed(ctx, r.CommonDir); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "cannot work in %q: HEAD has no commit yet", r.Top).
			WithHint("git commit --allow-empty -m 'first commit'")
	}
	if len(f) != 8 {
		return nil, fault.New(fault.Invalid, "cannot work in %q: a path with a line break is not supported", dir)
	}
	r.Head, r.HeadTree = f[5], f[6]
	if f[7] != "HEAD" {
		r.HeadRef = f[7]
	}
	r.Settings, r.caller = <-settings, caller.Of(ctx)
	return r, nil
}

func notRepository(dir string, err error) error {
	var f *Failure
	if errors.As(err, &f) && strings.Contains(f.Stderr, "dubious ownership") {
		return fault.New(fault.Denied, "cannot use the repository at %q: another user owns it", dir).
			WithHint("git config --global --add safe.directory %s", dir)
	}
	return fault.Wrap(fault.NotFound, err, "cannot find a git repository at %q", dir).
		WithHint("git init && git commit --allow-empty -m 'first commit'")
}

// At returns a repository known from a record: its common git directory, its
// work tree (may be empty) and any object id. It starts no process and does not
// read HEAD. The caller of ctx counts later too; the end of ctx does not matter.
func At(ctx context.Context, commonDir, top, oid string) *Repository {
	r := &Repository{Location: Location{Top: top, GitDir: commonDir, CommonDir: commonDir}, ObjectFormat: "sha1", caller: caller.Of(ctx)}
	if len(oid) == 64 {
		r.ObjectFormat = "sha256"
	}
	if found, ok := Locate(top); top != "" && ok && found.CommonDir == commonDir {
		r.GitDir = found.GitDir
	}
	r.Settings = sync.OnceValues(func() (*Settings, error) {
		return ReadSettings(context.WithoutCancel(ctx), Command{GitDir: r.CommonDir})()
	})
	return r
}

// Locate finds the repository of dir without starting git, for commands that
// must be fast. It knows plain repositories and linked worktrees; where it
// returns false, ask [Open].
func Locate(dir string) (Location, bool) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return Location{}, false
	}
	for ; ; dir = filepath.Dir(dir) {
		dotGit := filepath.Join(dir, ".git")
		info, err := os.Lstat(dotGit)
		switch {
		case err == nil && info.IsDir():
			if _, err := os.Stat(filepath.Join(dotGit, "objects")); err != nil {
				return Location{}, false
			}
			return Location{Top: dir, GitDir: dotGit, CommonDir: dotGit}, true
		case err == nil && info.Mode().IsRegular():
			return locateLinked(dir, dotGit)
		case err == nil || dir == filepath.Dir(dir):
			return Location{}, false
		}
	}
}

// locateLinked reads a .git file: gitrepository-layout(5), "gitdir: <path>".
func locateLinked(top, dotGit string) (Location, bool) {
	content, err := os.ReadFile(dotGit)
	gitDir, ok := strings.CutPrefix(strings.TrimRight(string(content), "\n"), "gitdir: ")
	if err != nil || !ok {
		return Location{}, false
	}
	if !filepath.IsAbs(gitDir) {
		gitDir = filepath.Join(top, gitDir)
	}
	common, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if err != nil { // a submodule or a separate git directory: leave it to git
		return Location{}, false
	}
	commonDir := string(bytes.TrimRight(common, "\n"))
	if !filepath.IsAbs(commonDir) {
		commonDir = filepath.Join(gitDir, commonDir)
	}
	l := Location{Top: top}
	l.GitDir, err = filepath.EvalSymlinks(gitDir)
	if err == nil {
		l.CommonDir, err = filepath.EvalSymlinks(commonDir)
	}
	return l, err == nil
}

// Command returns a process against this repository's common directory.
func (r *Repository) Command(args ...string) Command {
	if r.View != "" {
		return Command{GitDir: r.View, Private: true, Args: args, Env: []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(r.CommonDir, "objects")}}
	}
	return Command{GitDir: r.CommonDir, Args: args}
}

// InCheckout returns a process against the user's checkout (its HEAD and index).
func (r *Repository) InCheckout(args ...string) Command {
	return Command{GitDir: r.GitDir, Dir: r.Top, Env: []string{"GIT_WORK_TREE=" + r.Top}, Args: args}
}

// Zero returns the object id that means "does not exist".
func (r *Repository) Zero() string { return strings.Repeat("0", r.HexLen()) }

func (r *Repository) HexLen() int {
	if r.ObjectFormat == "sha256" {
		return 64
	}
	return 40
}

// IsOid reports whether s is a full object id.
func IsOid(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Resolve finds the commit and tree that rev names, in any spelling
// gitrevisions(7) allows. It fails with NotFound.
func (r *Repository) Resolve(ctx context.Context, rev string) (commit, tree string, err error) {
	if rev == "" || strings.ContainsAny(rev, "\n\x00") {
		return "", "", fault.New(fault.Invalid, "cannot use %q as a revision", rev)
	}
	// In the order in which git is asked: peeling ":/text" would change the text.
	found, err := r.LookUp(ctx, rev+"^{commit}", rev+"^{tree}", rev)
	if err != nil {
		return "", "", fault.Wrap(fault.Internal, err, "cannot resolve %q", rev)
	}
	if found[0].Kind != "commit" && found[2].Kind == "commit" {
		if found, err = r.LookUp(ctx, found[2].Oid, found[2].Oid+"^{tree}"); err != nil {
			return "", "", fault.Wrap(fault.Internal, err, "cannot resolve %q", rev)
		}
	}
	switch {
	case found[0].Kind == "commit" && found[1].Kind == "tree":
		return found[0].Oid, found[1].Oid, nil
	case found[0].Kind == "ambiguous":
		return "", "", fault.New(fault.Invalid, "cannot resolve %q: it is ambiguous", rev)
	}
	return "", "", fault.New(fault.NotFound, "cannot find a commit called %q", rev).WithHint("git log --oneline --all")
}

type object struct{ Oid, Kind string }

// LookUp resolves names in the user's checkout: in a linked worktree HEAD is
// that worktree's.
func (r *Repository) LookUp(ctx context.Context, names ...string) ([]object, error) {
	c := r.Command()
	c.GitDir = r.GitDir
	return c.LookUp(ctx, names)
}

// LookUp resolves names. They are passed on standard input, where no option can hide.
func (c Command) LookUp(ctx context.Context, names []string) ([]object, error) {
	c.Args = []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"}
	c.Stdin = strings.NewReader(strings.Join(names, "\n") + "\n")
	out, err := c.Output(ctx)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	found := make([]object, len(names))
	for i := range found {
		if i < len(lines) {
			// "<oid> <kind>", "<name> missing" or "<name> ambiguous"
			cut := strings.LastIndexByte(lines[i], ' ')
			found[i] = object{lines[i][:max(cut, 0)], lines[i][cut+1:]}
		}
	}
	return found, nil
}
