package feed

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Write lists the changes. Files that vanish meanwhile are left out.
func Write(ctx context.Context, w io.Writer, changes workspace.Changes) error {
	return write(ctx, w, changes, nil)
}

// WriteBut is Write without the content of directories that git ignores by
// rules and by each .gitignore that it meets.
func WriteBut(ctx context.Context, w io.Writer, changes workspace.Changes, rules workspace.Rules) error {
	return write(ctx, w, changes, newPruning(rules))
}

func newPruning(rules workspace.Rules) *pruning {
	stack := ignore.NewStack(rules.Fold, rules.Texts[:max(0, len(rules.Texts)-1)]...)
	var top []byte
	if len(rules.Texts) > 0 {
		top = rules.Texts[len(rules.Texts)-1]
	}
	return &pruning{above: stack, rules: stack.Enter("", top)}
}

// pruning is the ignore rules in one directory.
type pruning struct {
	path         string
	above, rules *ignore.Stack // without and with the .gitignore of the base
}

// of returns the pruning in d, whose own .gitignore replaces the base's.
func (p *pruning) of(d workspace.Dir) *pruning {
	if p == nil {
		return nil
	}
	entry, err := d.Entry(".gitignore")
	if err != nil {
		return p
	}
	own := *p
	own.rules = p.above
	if entry.Kind == workspace.Regular {
		if content, ok := readRules(d); ok {
			own.rules = p.above.Enter(p.path, content)
		}
	}
	return &own
}

// maxRules bounds a .gitignore, as git does (git.MaxRules).
const maxRules = 1 << 20

func readRules(d workspace.Dir) ([]byte, bool) {
	f, err := d.File(".gitignore")
	if err != nil {
		return nil, false
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	return content, err == nil && len(content) <= maxRules
}

// below returns the pruning in the directory with a name.
func (p *pruning) below(name string) *pruning {
	if p == nil {
		return nil
	}
	at := p.at(name)
	return &pruning{path: at, above: p.rules, rules: p.rules}
}

func (p *pruning) at(name string) string {
	if p.path == "" {
		return name
	}
	return p.path + "/" + name
}

// WriteBelow lists one directory that a listing has left out.
func WriteBelow(ctx context.Context, w io.Writer, changes workspace.Changes, path string) error {
	l := newLister(ctx, w, changes)
	l.room = 0                         // the room for content is the whole listing's
	_, _ = l.w.WriteString(belowMagic) // Flush says what went wrong
	d, err := changes.Top()
	if err != nil {
		return err
	}
	defer func() { d.Close() }()
	for name := range strings.SplitSeq(path, "/") {
		below, err := d.Dir(name)
		var stays workspace.Stays
		if errors.As(err, &stays) {
			l.byte(opUnread)
			l.number(codeOf(stays))
			return l.w.Flush()
		}
		if err != nil {
			return err
		}
		d.Close()
		d = below
	}
	l.byte(opDirectory)
	l.number(propertiesOf(d))
	if err := l.directory(d, nil); err != nil {
		return err
	}
	l.number(l.count)
	return l.w.Flush()
}

func newLister(ctx context.Context, w io.Writer, changes workspace.Changes) lister {
	return lister{ctx: ctx, encoder: encoder{bufio.NewWriterSize(w, 64<<10)}, fresh: changes.Began() - inlineWithin, most: maxInline, room: mostInline}
}

func write(ctx context.Context, w io.Writer, changes workspace.Changes, but *pruning) error {
	l := newLister(ctx, w, changes)
	return l.whole(changes, but)
}

func (l *lister) whole(changes workspace.Changes, but *pruning) error {
	_, _ = l.w.WriteString(magic) // Flush says what went wrong
	l.signed(changes.Began())
	top, err := changes.Top()
	if err != nil {
		return err
	}
	defer top.Close()
	if top.Opaque() {
		return fault.New(fault.Unsupported, "cannot list the changes: their top directory hides the layers")
	}
	if err := l.directory(top, but.of(top)); err != nil {
		return err
	}
	l.number(l.count)
	return l.w.Flush()
}

// lister is one Write under way.
type lister struct {
	encoder
	ctx   context.Context
	count uint64
	fresh int64 // files changed since then may be inline
	most  int64 // bytes of a file that may be inline
	room  int64 // for content, in bytes
}

func (l *lister) directory(d workspace.Dir, but *pruning) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.ctx.Err(); err != nil {
			return fault.Wrap(fault.Canceled, err, "cannot list the changes")
		}
		entry, err := d.Entry(name)
		var stays workspace.Stays
		if errors.As(err, &stays) {
			l.begin(opUnread, name)
			l.number(codeOf(stays))
			continue
		}
		if err != nil {
			continue // vanished meanwhile
		}
		if err := l.one(d, name, entry, but); err != nil {
			return err
		}
	}
	l.byte(opEnd)
	return nil
}

func (l *lister) one(d workspace.Dir, name string, entry workspace.Entry, but *pruning) error {
	switch entry.Kind {
	case workspace.Directory:
		if but != nil && name != ".git" && but.rules.Ignored(but.at(name), true) {
			l.begin(opPruned, name)
			return nil
		}
		return l.below(d, name, but)
	case workspace.Link:
		target, err := d.Link(name)
		var stays workspace.Stays
		if errors.As(err, &stays) {
			return nil // vanished meanwhile
		}
		if err != nil {
			return err
		}
		l.begin(opLink, name)
		l.entry(entry)
		l.string(string(target))
	case workspace.Regular:
		l.regular(d, name, entry)
	case workspace.Whiteout:
		l.begin(opWhiteout, name)
	default:
		l.begin(opSpecial, name)
	}
	return nil
}

// regular lists a file, with its content if that is small, fresh, and did not
// change while it was read.
func (l *lister) regular(d workspace.Dir, name string, entry workspace.Entry) {
	if entry.Size <= min(l.most, l.room) && entry.Ctime >= l.fresh {
		if now, content, holes, ok := whole(d, name, l.most); ok {
			l.begin(opInline, name)
			l.entry(now)
			l.number(uint64(max(0, holes)))
			l.string(string(content))
			l.room -= int64(len(content))
			return
		}
	}
	l.begin(opRegular, name)
	l.entry(entry)
}

// whole reads a small file. One that cannot be read whole is asked for later, and
// the reason is given then.
func whole(d workspace.Dir, name string, most int64) (entry workspace.Entry, content []byte, holes int64, ok bool) {
	f, err := d.File(name)
	if err != nil {
		return entry, nil, 0, false
	}
	defer f.Close()
	entry = f.Entry()
	if entry.Held < entry.Size {
		if holes, err = f.Holes(); err != nil {
			return entry, nil, 0, false
		}
	}
	content, err = io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || int64(len(content)) != entry.Size || int64(len(content)) > most {
		return entry, nil, 0, false
	}
	again, err := f.Again()
	return entry, content, holes, err == nil && again == entry
}

func (l *lister) below(d workspace.Dir, name string, but *pruning) error {
	below, err := d.Dir(name)
	var stays workspace.Stays
	if errors.As(err, &stays) {
		l.begin(opUnread, name)
		l.number(codeOf(stays))
		return nil
	}
	if err != nil {
		return err
	}
	defer below.Close()
	l.begin(opDirectory, name)
	l.number(propertiesOf(below))
	if name == ".git" {
		l.byte(opEnd)
		return nil
	}
	return l.directory(below, but.below(name).of(below))
}

func propertiesOf(d workspace.Dir) uint64 {
	properties := uint64(0)
	if d.Opaque() {
		properties |= opaque
	}
	if d.Repository() {
		properties |= repository
	}
	return properties
}

func (l *lister) begin(op byte, name string) {
	l.count++
	l.byte(op)
	l.string(name)
}

// WriteFile sends a file: its entry, its holes, its bytes as they come, and
// its entry at the end. opening is the error of opening it, if there was one.
func WriteFile(w io.Writer, f workspace.File, opening error) error {
	e := encoder{bufio.NewWriter(w)}     // most files are small
	_, _ = e.w.WriteString(contentMagic) // Flush says what went wrong
	holes := int64(0)
	if opening == nil {
		// Counted only if the disk holds less than the file's size.
		if entry := f.Entry(); entry.Held < entry.Size {
			holes, opening = f.Holes()
		}
	}
	var stays workspace.Stays
	if errors.As(opening, &stays) {
		e.byte(opUnread)
		e.number(codeOf(stays))
		return e.w.Flush()
	}
	if opening != nil {
		return opening
	}
	e.byte(opRegular)
	e.entry(f.Entry())
	e.number(uint64(holes))
	chunk := make([]byte, min(f.Entry().Size, maxChunk))
	for left := f.Entry().Size; left > 0; {
		n, err := f.Read(chunk[:min(left, maxChunk)])
		if n > 0 {
			e.number(uint64(n))
			_, _ = e.w.Write(chunk[:n])
			left -= int64(n)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	e.number(0)
	again, err := f.Again()
	if err != nil {
		return err
	}
	e.entry(again)
	return e.w.Flush()
}

// maxChunk is how much content is announced at once.
const maxChunk = 256 << 10
