package branch

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// walker is a scan under way.
type walker struct {
	*scan
	changes workspace.Changes
	later   []sparse // files that wait for the end of the walk
	ahead   ahead
}

// directory is one directory of what changed on the way down.
type directory struct {
	path          string
	written       workspace.Dir
	visible       []int // layers that show through here
	tracked       []int // layers that had it, opaque or not: what git's index would know
	ignore        *ignore.Stack
	attributes    *attribute.Stack
	hasAttributes bool
	ignored       bool // only tracked paths count in here
	users         int  // the walk, and the files in it that are read ahead
}

// leave closes the directory after its last user.
func (d *directory) leave() {
	if d.users--; d.users == 0 {
		d.written.Close()
	}
}

func (s *scan) walk(ctx context.Context) (err error) {
	changes, err := s.changes(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, changes.Close()) }()
	s.start = changes.Began()
	w := &walker{scan: s, changes: changes}
	d, err := changes.Top()
	if err != nil {
		return err
	}
	top := &directory{
		written: d, visible: s.layers.All(), tracked: s.layers.All(),
		ignore: s.ignore, attributes: s.attributes, users: 1,
	}
	defer top.leave()
	defer w.stopAhead()
	if d.Opaque() {
		return fault.New(fault.Unsupported, "cannot read the changes: their top directory hides the layers")
	}
	if err := w.rules(ctx, top); err != nil {
		return err
	}
	if err := w.Read(ctx, top); err != nil {
		return err
	}
	if err := w.finishAll(ctx); err != nil {
		return err
	}
	if s.copied != nil {
		for _, path := range s.copied.Missing() {
			if !covered(s.result.gone, path) {
				s.result.gone[path] = struct{}{}
			}
		}
	}
	if err := w.takeSparse(ctx); err != nil {
		return err
	}
	return w.release(ctx, top)
}

// changes opens the changes, without what is below ignored directories where
// that saves work. The lister knows of rules that change in the listing
// itself; what it leaves out is asked for if this walk enters it.
func (s *scan) changes(ctx context.Context) (workspace.Changes, error) {
	pruner, saves := s.workspace.(workspace.Pruner)
	if !saves {
		return s.workspace.Changes(ctx)
	}
	top, err := s.layers.Read(s.layers.All(), ".gitignore")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read %q", ".gitignore")
	}
	rules := s.excluded
	rules.Texts = append(slices.Clone(rules.Texts), top)
	return pruner.ChangesBut(ctx, rules)
}

// rules reads a directory's ignore and attribute files, from the merged view
// of upper and layers.
func (w *walker) rules(ctx context.Context, d *directory) error {
	content, err := w.merged(ctx, d, ".gitignore")
	if err != nil {
		return err
	}
	if content != nil {
		d.ignore = d.ignore.Enter(d.path, content)
	}
	content, err = w.merged(ctx, d, ".gitattributes")
	if err != nil {
		return err
	}
	if content != nil {
		d.attributes, d.hasAttributes = d.attributes.Enter(d.path, content), true
	}
	return nil
}

// merged reads a file of the merged view. git does not follow a link here
// (2.32), and neither do we.
func (w *walker) merged(ctx context.Context, d *directory, name string) ([]byte, error) {
	entry, err := d.written.Entry(name)
	if errors.Is(err, fs.ErrNotExist) {
		path := git.Join(d.path, name)
		content, err := w.layers.Read(d.visible, path)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot read %q", path)
		}
		return content, nil
	}
	if err != nil || entry.Kind != workspace.Regular { // git goes on without it, too
		return nil, nil
	}
	f, err := d.written.File(name)
	if err != nil {
		var stays workspace.Stays
		if errors.As(err, &stays) {
			return nil, nil
		}
		return nil, err
	}
	defer f.Close()
	content, err := layer.ReadLimited(f, git.MaxRules)
	if err != nil {
		if err := w.finishAll(ctx); err != nil {
			return nil, err
		}
		w.result.notes.Add("%q is not followed: it is too large", git.Join(d.path, name))
		return nil, nil
	}
	return content, nil
}

// Read goes through the names of one directory.
func (w *walker) Read(ctx context.Context, d *directory) error {
	names, err := d.written.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return fault.Wrap(fault.Canceled, err, "cannot go on reading")
		}
		path := git.Join(d.path, name)
		entry, err := d.written.Entry(name)
		if err == nil && w.unchanged(path, entry) {
			continue
		}
		if w.entries++; w.entries > w.limits.Entries {
			return fault.New(fault.Denied, "cannot read more than %d changed paths", w.limits.Entries).
				WithHint("add what is generated to .gitignore")
		}
		if d.path == "" && name == ".git" {
			continue
		}
		var stays workspace.Stays
		if err != nil && !errors.As(err, &stays) {
			continue // vanished meanwhile
		}
		mode := uint32(0)
		if entry.Kind == workspace.Link {
			mode = git.ModeLink
		}
		if why := git.BadPath(path, mode); why != "" {
			if err := w.finishAll(ctx); err != nil {
				return err
			}
			w.result.notes.Add("%q stays out: %s", path, why)
			w.result.left.Add(path)
			if w.copied != nil { // if the base has it, it stays
				w.copied.MeetBelow(path)
			}
			continue
		}
		if err != nil {
			err = w.unread(ctx, d, path, stays)
		} else {
			err = w.entry(ctx, d, name, path, entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unchanged reports whether a file is still as it was copied.
func (w *walker) unchanged(path string, entry workspace.Entry) bool {
	if w.copied == nil {
		return false
	}
	switch entry.Kind {
	case workspace.Regular, workspace.Link:
		w.copied.Meet(path)
		return w.copied.Unchanged(path, w.fileOf(entry))
	case workspace.Directory:
		if f, ok := w.copied.Files[path]; ok && f.Mode == git.ModeGitlink {
			w.copied.Meet(path)
		}
	}
	return false
}

// entry decides about one name.
func (w *walker) entry(ctx context.Context, d *directory, name, path string, entry workspace.Entry) error {
	switch entry.Kind {
	case workspace.Directory:
		return w.directory(ctx, d, name, path)
	case workspace.Regular, workspace.Link:
		return w.file(ctx, d, name, path, entry)
	}
	// A whiteout, or something git cannot store: what the layers have is gone.
	kind, _, err := w.layers.Lookup(d.tracked, path)
	if err != nil {
		return err
	}
	if kind != layer.KindNone {
		w.result.gone[path] = struct{}{}
	} else if entry.Kind == workspace.Whiteout && (w.ignored(d, path, false) || w.ignored(d, path, true)) {
		w.meet(path) // of what lies below the base
	}
	if entry.Kind != workspace.Whiteout && !w.ignored(d, path, false) {
		if err := w.finishAll(ctx); err != nil {
			return err
		}
		w.result.notes.Add("%q stays out: git cannot hold a socket, pipe or device", path)
	}
	return nil
}

func (w *walker) ignored(d *directory, path string, isDir bool) bool {
	return d.ignored || d.ignore.Ignored(path, isDir)
}

func (w *walker) file(ctx context.Context, d *directory, name, path string, entry workspace.Entry) error {
	kind, _, err := w.layers.Lookup(d.tracked, path)
	if err != nil {
		return err
	}
	_, known := w.old.files[path]
	if !known {
		_, known = w.forced[path]
	}
	if kind != layer.KindFile && !known && w.ignored(d, path, false) {
		if kind != layer.KindNone { // a file where the layers have a directory
			w.result.gone[path] = struct{}{}
		}
		w.meet(path)
		return nil
	}
	old, had := w.old.files[path]
	now := w.fileOf(entry)
	same := had && old.Ino != 0 && old.Mode&0o170000 == now.Mode&0o170000 &&
		old.Ino == entry.Ino && old.Size == now.Size && old.Mtime == now.Mtime && old.Ctime == now.Ctime
	switch {
	case same:
		now.Oid, now.Hollow = old.Oid, old.Hollow
	case now.Mode == git.ModeLink:
		now, err = w.symlink(d, name, path, entry)
	default:
		if ahead, err := w.readAhead(ctx, d, name, path, kind); ahead || err != nil {
			return err
		}
		return w.inTurn(ctx, d, name, path, kind)
	}
	return w.settle(path, kind, now, err)
}

// inTurn reads a regular file and records what it is.
func (w *walker) inTurn(ctx context.Context, d *directory, name, path string, kind layer.Kind) error {
	now, err := w.regular(ctx, func() (workspace.File, error) { return d.written.File(name) }, path, d, w.postpone(path))
	if errors.Is(err, errLater) {
		w.later = append(w.later, sparse{path, d, kind})
		return nil
	}
	return w.settle(path, kind, now, err)
}

func (w *walker) directory(ctx context.Context, d *directory, name, path string) error {
	kind, tracked, err := w.layers.Lookup(d.tracked, path)
	if err != nil {
		return err
	}
	link, linked := w.gitlinks[path]
	if old, ok := w.old.files[path]; !linked && ok && old.Mode == git.ModeGitlink {
		link, linked = old, true
	}
	module, given := w.modules[path]
	if given {
		link, linked = module, true
	}
	if linked {
		if err := w.finishAll(ctx); err != nil {
			return err
		}
		if !given {
			w.result.left.Add(path)
		}
		if !given && link.Oid != w.old.files[path].Oid {
			w.result.notes.Add("%q comes out as a commit id only: it is a separate git repository, and its commits stay inside unless they are pushed from there", path)
		}
		w.result.files[path] = link
		return nil
	}
	if kind == layer.KindGitlink {
		return nil // the base's submodule stays as it is
	}
	known := kind == layer.KindDir || w.trackedBelow(path)
	ignored := w.ignored(d, path, true)
	if ignored && !known && kind == layer.KindNone {
		w.meet(path)
		return nil
	}
	written, err := d.written.Dir(name)
	if err != nil {
		var stays workspace.Stays
		if !errors.As(err, &stays) {
			return err
		}
		return w.staysBelow(ctx, path, stays)
	}
	sub := &directory{
		path: path, written: written, tracked: tracked, ignored: ignored,
		ignore: d.ignore, attributes: d.attributes, hasAttributes: d.hasAttributes, users: 1,
	}
	defer sub.leave()
	if kind == layer.KindFile {
		w.result.gone[path] = struct{}{}
	}
	opaque := written.Opaque()
	if kind == layer.KindDir && opaque {
		w.result.gone[path] = struct{}{}
	}
	if !opaque && kind == layer.KindDir {
		if sub.visible, err = w.visible(d, path); err != nil {
			return err
		}
	}
	if !known { // otherwise git looks inside, too
		if ignored {
			w.meet(path)
			return nil
		}
		if written.Repository() {
			if err := w.finishAll(ctx); err != nil {
				return err
			}
			w.result.notes.Add("%q stays out: %s", path, whyNested(written))
			w.result.left.Add(path)
			return nil
		}
	}
	if err := w.rules(ctx, sub); err != nil {
		return err
	}
	return w.Read(ctx, sub)
}

// expand lists the tracked paths of the base at or below path.
func (b base) expand(path string) ([]string, error) {
	if b.copied != nil {
		return b.layers.Expand(nil, path, nil)
	}
	set := b.layers.All()
	for i, part := 0, strings.Split(path, "/"); i < len(part)-1; i++ {
		kind, dirs, err := b.layers.Lookup(set, strings.Join(part[:i+1], "/"))
		if err != nil || kind != layer.KindDir {
			return nil, err
		}
		set = dirs
	}
	return b.layers.Expand(set, path, nil)
}
