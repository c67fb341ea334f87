package engine

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// The files of a sandbox are what its branch holds, except for what is not
// committed yet. When others move the branch, the files follow at the next command:
// each file in one step, and only where the sandbox still has what it committed.
// Ignored files and HOME are in no commit and stay.

// catchUp has the files follow a branch that others have moved. It costs a look at
// one file when that has not happened. An obstacle becomes a note: the command runs
// all the same.
func (e *Engine) catchUp(ctx context.Context, p *place, degraded bool) {
	tip := p.repo.GlanceTip(p.record.Branch)
	if tip == "" || tip == p.stands() && !p.record.Apart {
		return
	}
	if err := e.followBranch(ctx, p, degraded); err != nil {
		p.note("the branch " + p.record.Branch + " was moved, and the files inside could not follow: " + err.Error())
	}
}

// stands is the commit at which litterbox left the branch.
func (p *place) stands() string { return cmp.Or(p.record.Last, p.record.Base) }

func (e *Engine) followBranch(ctx context.Context, p *place, degraded bool) error {
	stream, err := e.running(ctx, p, degraded)
	if err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return err
	}
	defer unlock()
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return err
	}
	*p.record = *fresh
	before := p.stands()
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil || tip == before && !p.record.Apart {
		return err // another command has done it
	}
	if contains, err := p.repo.IsAncestor(ctx, before, tip); err != nil {
		return err
	} else if !contains {
		_, err := branch.KeepHistory(ctx, p.repo, p.record.ID, before)
		if err != nil {
			return err
		}
		p.note("what the branch " + p.record.Branch + " held before it was moved is kept: git log " + before[:12])
	}
	followed, err := e.follow(ctx, p)
	if err != nil {
		return err
	}
	if followed.changed > 0 {
		p.note(fmt.Sprintf("the branch %s was moved: %s inside follow", p.record.Branch, counted(followed.changed, "file")))
	}
	p.noteStayed(followed)
	return nil
}

// followed is the result of a follow.
type followed struct {
	changed int
	stayed  []string // changed inside meanwhile
	modules []string
}

func (p *place) noteStayed(f followed) {
	if len(f.stayed) > 0 {
		p.note(fmt.Sprintf("%s inside did not follow, as the sandbox has changed them: %s (the next commit has the sandbox's version)",
			counted(len(f.stayed), "file"), joined(f.stayed)))
	}
	if len(f.modules) > 0 {
		p.note("submodules inside stay where they are: " + joined(f.modules))
	}
}

// joined names the first of some paths.
func joined(paths []string) string {
	const most = 3
	text := ""
	for n, path := range paths[:min(most, len(paths))] {
		if n > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%q", path)
	}
	if more := len(paths) - most; more > 0 {
		text += " and " + itoa(more) + " more"
	}
	return text
}

// follow brings the files inside to the tip of the branch, and records that they
// are there. The sandbox runs, and the caller holds the lock of commits. After a
// kill, the next call goes on where it was.
func (e *Engine) follow(ctx context.Context, p *place) (done followed, err error) {
	q := branch.BehindRequest{
		Branch: p.record.Branch, State: p.deltaFile(), Base: p.record.Base, Last: p.record.Last, Dir: p.path("follow"),
	}
	behind, err := branch.FindBehind(ctx, p.repo, q)
	if err != nil {
		return done, err
	}
	stayed := map[string]bool{}
	if len(behind.Changes) > 0 {
		if stayed, err = e.sendBehind(ctx, p, q.Dir, behind); err != nil {
			return done, err
		}
	}
	for _, c := range behind.Changes {
		if stayed[c.Path] {
			done.stayed = append(done.stayed, c.Path)
		}
	}
	done.changed, done.modules = len(behind.Changes)-len(done.stayed), behind.Modules
	if err := behind.Followed(q, stayed, p.store.Strict()); err != nil {
		return done, err
	}
	apart := len(done.stayed) > 0
	return done, e.update(ctx, p, func(r *sandbox.Sandbox) { r.Last, r.Apart = behind.Tip, apart })
}

// sendBehind has the guest take over the changes, and gives the paths whose content
// differs from what the sandbox had committed.
func (e *Engine) sendBehind(ctx context.Context, p *place, dir string, behind *branch.Behind) (stayed map[string]bool, err error) {
	if err := hostile.Remove(dir); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot clear %q", dir)
	}
	defer func() { err = errors.Join(err, hostile.Remove(dir)) }()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	inside, tip := behind.Paths()
	for _, one := range []struct {
		treeish, to string
		paths       []string
	}{{behind.Inside, before, inside}, {behind.Tip, after, tip}} {
		if err := layer.CheckOutPaths(ctx, p.repo, one.treeish, one.paths, one.to); err != nil {
			return nil, err
		}
	}
	stream, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	archive, writer := io.Pipe()
	go func() {
		writer.CloseWithError(writeBehind(writer, filepath.Join(before, "files"), filepath.Join(after, "files"), behind.Changes))
	}()
	defer archive.Close()
	answer, err := wire.Follow(ctx, stream, archive)
	if fault.KindOf(err) == fault.Unsupported {
		return nil, fault.Wrap("", err, "the sandbox runs in an older version").WithHint("litterbox stop %s", p.record.Name)
	}
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, c := range behind.Changes {
		known[c.Path] = true
	}
	stayed = map[string]bool{}
	for _, path := range answer.Stayed {
		if known[string(path)] { // the guest is not trusted
			stayed[string(path)] = true
		}
	}
	return stayed, nil
}

// writeBehind writes the stream of a [wire.Follow]: deletions first.
func writeBehind(w io.Writer, before, after string, changes []git.TreeDiff) error {
	old, err := os.OpenRoot(before)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot open %q", before)
	}
	defer old.Close()
	now, err := os.OpenRoot(after)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot open %q", after)
	}
	defer now.Close()
	archive := tar.NewWriter(w)
	gone := func(c git.TreeDiff) int { return int(min(c.NewMode, 1)) }
	ordered := slices.Clone(changes)
	slices.SortStableFunc(ordered, func(a, b git.TreeDiff) int { return gone(a) - gone(b) })
	for _, c := range ordered {
		records := map[string]string{wire.FollowWas: wire.FollowNone}
		if c.OldMode != 0 {
			if records[wire.FollowWas], err = holds(old, c.Path); err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot read %q", c.Path)
			}
		}
		if c.NewMode == 0 {
			records[wire.FollowGone] = "1"
			err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: c.Path, Format: tar.FormatPAX, PAXRecords: records})
		} else {
			err = writeFollowing(archive, now, c, records)
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot copy %q", c.Path)
		}
	}
	return archive.Close()
}

func writeFollowing(archive *tar.Writer, root *os.Root, c git.TreeDiff, records map[string]string) error {
	header := &tar.Header{Name: c.Path, Mode: 0o644, Format: tar.FormatPAX, PAXRecords: records}
	info, err := root.Lstat(c.Path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = root.Readlink(c.Path); err != nil {
			return err
		}
		return archive.WriteHeader(header)
	}
	if c.NewMode == git.ModeExecutable {
		header.Mode = 0o755
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	file, err := root.Open(c.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}

// holds says what a checkout has at a path, in the words of [wire.FollowWas].
func holds(root *os.Root, path string) (string, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := root.Readlink(path)
		return "link " + to, err
	}
	file, err := root.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return "file " + hex.EncodeToString(sum.Sum(nil)), err
}
