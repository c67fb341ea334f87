package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The refs litterbox keeps beside the branches, one directory for each use.
const (
	Heads       = "refs/heads/"
	keepRefs    = "refs/litterbox/keep/"    // + sandbox id: its base, as long as the sandbox exists
	HistoryRefs = "refs/litterbox/history/" // + sandbox id/n: what milestone n squashed
	TrashRefs   = "refs/litterbox/trash/"   // + name-stamp: tips of deleted sandboxes
	PreviewRefs = "refs/litterbox/present/" // never exists; names a commit while it is made
)

// CheckRef applies git-check-ref-format(1) to the part after the prefix.
func CheckRef(name string) error {
	bad := name == "" || name == "@" || name == "HEAD" || strings.HasPrefix(name, "-") ||
		strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "//") || strings.Contains(name, "@{") ||
		strings.ContainsAny(name, " ~^:?*[\\\x7f")
	for _, component := range strings.Split(name, "/") {
		bad = bad || strings.HasPrefix(component, ".") || strings.HasSuffix(component, ".lock")
	}
	for i := range len(name) {
		bad = bad || name[i] < 0x20
	}
	if bad {
		return fault.New(fault.Invalid, "cannot use %q as a branch name", name).WithHint("git help check-ref-format")
	}
	return nil
}

// Tip returns the commit that a branch (short name) points at; NotFound if
// git says that there is none, or no repository. Of a git that ended in any other way
// nothing is known.
func (r *Repository) Tip(ctx context.Context, branch string) (string, error) {
	if err := CheckRef(branch); err != nil {
		return "", err
	}
	tip, err := r.Command("rev-parse", "--verify", "--quiet", Heads+branch+"^{commit}").Line(ctx)
	if f := (*Failure)(nil); errors.As(err, &f) && (f.Code == 1 || strings.Contains(f.Stderr, "not a git repository")) {
		return "", fault.New(fault.NotFound, "cannot find the branch %q", branch).WithHint("litterbox reattach")
	}
	return tip, err
}

// CreateBranch makes a branch at commit, and with id also the ref that keeps
// commit from being collected as long as sandbox id exists: both or none.
// Nothing is ever replaced: AlreadyExists, Conflict (`fix` beside `fix/x`) or
// Invalid.
func (r *Repository) CreateBranch(ctx context.Context, branch, commit, id string) error {
	return r.CreateBranchFrom(ctx, branch, commit, id, commit)
}

// CreateBranchFrom is CreateBranch for a branch that already has commits of its own:
// base is kept as long as sandbox id exists.
func (r *Repository) CreateBranchFrom(ctx context.Context, branch, commit, id, base string) error {
	if err := CheckRef(branch); err != nil {
		return err
	}
	var lines []string
	if id != "" {
		if err := CheckRef(id); err != nil {
			return err
		}
		// git writes them in this order, so that a branch of ours has its pin
		// even if git is killed in between.
		lines = append(lines, "create "+keepRefs+id+"\x00"+base+"\x00")
	}
	lines = append(lines, "create "+Heads+branch+"\x00"+commit+"\x00")
	return r.UpdateRefs(ctx, "cannot create the branch", branch, lines...)
}

// IsUntouched reports whether a branch is as [Repository.CreateBranch] made it, by
// its log. Without a log nothing is known, and it is not.
func (r *Repository) IsUntouched(ctx context.Context, branch string) (bool, error) {
	if err := CheckRef(branch); err != nil {
		return false, err
	}
	out, err := r.Command("reflog", "show", "--format=%gs", Heads+branch, "--").Output(ctx)
	return strings.TrimSpace(string(out)) == "litterbox", err
}

// Pin keeps commit from being collected as long as sandbox id exists.
func (r *Repository) Pin(ctx context.Context, id, commit string) error {
	if err := CheckRef(id); err != nil {
		return err
	}
	return r.UpdateRefs(ctx, "cannot keep the base of", id, "update "+keepRefs+id+"\x00"+commit+"\x00\x00")
}

// Pinned reports whether a commit is kept for sandbox id. A git that outlives the
// command that started it may be about to write the pin: its lock is waited for.
func (r *Repository) Pinned(ctx context.Context, id string) (bool, error) {
	if err := CheckRef(id); err != nil {
		return false, err
	}
	lock := filepath.Join(r.CommonDir, keepRefs+id+".lock")
	for {
		_, locked := os.Lstat(lock)
		_, err := r.Command("rev-parse", "--verify", "--quiet", keepRefs+id).Output(ctx)
		if ExitCode(err) != 1 { // of another failure nothing is known
			return err == nil, err
		}
		if locked != nil {
			return false, nil
		}
		if err := r.AwaitLock(ctx, &LockedError{lock}); err != nil {
			return false, err
		}
	}
}

// Unpin undoes Pin. A missing pin is not an error. Commits that milestones
// squashed and deleted branches stay reachable.
func (r *Repository) Unpin(ctx context.Context, id string) error {
	if err := CheckRef(id); err != nil {
		return err
	}
	return r.UpdateRefs(ctx, "cannot release the base of", id, "delete "+keepRefs+id+"\x00\x00")
}

// Pins lists the ids of the sandboxes that keep a commit.
func (r *Repository) Pins(ctx context.Context) ([]string, error) {
	out, err := r.Command("for-each-ref", "--format=%(refname)", keepRefs).Output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list what is kept in %q", r.CommonDir)
	}
	var ids []string
	for line := range strings.Lines(string(out)) {
		ids = append(ids, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), keepRefs))
	}
	return ids, nil
}

// UpdateRefs runs one transaction of git-update-ref(1) --stdin -z commands.
func (r *Repository) UpdateRefs(ctx context.Context, verb, name string, lines ...string) error {
	var err error
	var f *Failure
	for attempt := 0; ; attempt++ {
		started := time.Now()
		c := r.Command("update-ref", "-m", "litterbox", "--stdin", "-z")
		c.Stdin = strings.NewReader(strings.Join(lines, ""))
		if _, err = c.Output(ctx); err == nil {
			return nil
		}
		if !errors.As(err, &f) || f.Code < 0 {
			r.dropLocks(started, refsOf(lines)...)
			return err
		}
		lock, locked := lockNamed(f.Stderr)
		if !locked || attempt == 3 {
			break
		}
		if err := r.AwaitLock(ctx, lock); err != nil {
			return fault.Wrap(fault.Conflict, err, "%s %q", verb, name)
		}
	}
	nested := regexp.MustCompile(`'refs/heads/([^']+)' exists; cannot create 'refs/heads/([^']+)'`)
	switch m := nested.FindStringSubmatch(f.Stderr); {
	case m != nil:
		return fault.New(fault.Conflict, "%s %q: the branch %q exists, and git cannot hold both", verb, m[2], m[1])
	case strings.Contains(f.Stderr, "reference already exists"):
		return fault.New(fault.AlreadyExists, "%s %q: it exists", verb, name)
	case strings.Contains(f.Stderr, "but expected"), strings.Contains(f.Stderr, "unable to resolve reference"):
		return fault.New(fault.Conflict, "%s %q: it moved meanwhile", verb, name)
	}
	return fault.Wrap(fault.Internal, err, "%s %q", verb, name)
}

// refsOf returns the refs of update-ref's commands: "verb SP ref NUL …".
func refsOf(lines []string) []string {
	var refs []string
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, " ")
		ref, _, _ := strings.Cut(rest, "\x00")
		refs = append(refs, ref)
	}
	return refs
}

// Has reports whether the repository has the commit. Of a git that ended in any way
// but saying so nothing is known.
func (r *Repository) Has(ctx context.Context, commit string) (bool, error) {
	if !IsOid(commit) {
		return false, fault.New(fault.Invalid, "cannot look for %q: not an object id", commit)
	}
	_, err := r.Command("cat-file", "-e", commit+"^{commit}").Output(ctx)
	if f := (*Failure)(nil); errors.As(err, &f) && (f.Code == 1 || strings.Contains(f.Stderr, "Not a valid object name")) {
		return false, nil
	}
	return err == nil, err
}

// IsAncestor reports whether ancestor is reachable from descendant.
func (r *Repository) IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error) {
	if !IsOid(ancestor) || !IsOid(descendant) {
		return false, fault.New(fault.Invalid, "cannot compare %q with %q: not object ids", ancestor, descendant)
	}
	_, err := r.Command("merge-base", "--is-ancestor", ancestor, descendant).Output(ctx)
	if ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// Dirty reports whether the user's checkout holds uncommitted changes, new
// files included. It reads only up to the first one.
func (r *Repository) Dirty(ctx context.Context) (bool, error) {
	if r.plainlyClean(ctx) {
		return false, nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := r.InCheckout("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
	// The caller has more urgent work for the processors, so git has one thread;
	// in a large repository it should not even compete for that.
	c.Config = append(c.Config, "core.preloadIndex=false")
	if info, err := os.Stat(filepath.Join(r.GitDir, "index")); err == nil && info.Size() > largeIndex {
		c.Idle = true
	}
	seen := &firstByte{stop: stop}
	c.Stdout = seen
	_, err := c.Output(ctx)
	if seen.any {
		return true, nil
	}
	if err != nil {
		return false, fault.Wrap("", err, "cannot see whether %q has uncommitted changes", r.Top)
	}
	return false, nil
}

// Uncommitted lists the tracked paths of the user's checkout that differ from
// HEAD, staged or not: those to take over, and those that are gone. It leaves
// out submodules and new files that were never added.
func (r *Repository) Uncommitted(ctx context.Context) (changed, gone []string, err error) {
	out, err := r.InCheckout("diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=all", "HEAD", "--").Output(ctx)
	if err != nil {
		return nil, nil, fault.Wrap("", err, "cannot see the uncommitted changes of %q", r.Top)
	}
	for len(out) > 0 {
		status, rest, ok := bytes.Cut(out, []byte{0})
		path, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 {
			return nil, nil, fault.New(fault.Internal, "cannot read what git diff printed")
		}
		switch out = rest; string(status) {
		case "D":
			gone = append(gone, string(path))
		case "U":
			return nil, nil, fault.New(fault.Conflict, "cannot take over the uncommitted changes: %q has unresolved conflicts", path).
				WithHint("git status")
		default:
			changed = append(changed, string(path))
		}
	}
	return changed, gone, nil
}

// Ignored picks the paths that git ignores in the user's checkout; tracked
// paths are not ignored.
func (r *Repository) Ignored(ctx context.Context, paths []string) (map[string]bool, error) {
	ignored := map[string]bool{}
	if len(paths) == 0 {
		return ignored, nil
	}
	c := r.InCheckout("check-ignore", "-z", "--stdin")
	c.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	out, err := c.Output(ctx)
	if err != nil && ExitCode(err) != 1 { // 1: none of them
		return nil, fault.Wrap("", err, "cannot ask git what %q ignores", r.Top)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		ignored[path] = true
	}
	return ignored, nil
}

// largeIndex is the size of an index, in bytes, of about ten thousand files.
const largeIndex = 1 << 20

// firstByte ends its producer as soon as anything arrives.
type firstByte struct {
	any  bool
	stop func()
}

func (f *firstByte) Write(p []byte) (int, error) {
	if len(p) > 0 && !f.any {
		f.any = true
		f.stop()
	}
	return len(p), nil
}

// ErrMoved means that a branch moved between our reading and our writing.
var ErrMoved = fault.New(fault.Conflict, "the branch moved meanwhile")

func CheckOids(oids ...string) error {
	for _, oid := range oids {
		if oid != "" && !IsOid(oid) {
			return fault.New(fault.Invalid, "cannot use %q as an object id", oid)
		}
	}
	return nil
}
