package feed

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Write lists what changed. What vanishes while it is looked at is left out.
func Write(ctx context.Context, w io.Writer, changes workspace.Changes) error {
	l := lister{ctx: ctx, encoder: encoder{bufio.NewWriterSize(w, 64<<10)}}
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
	if err := l.directory(top); err != nil {
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
}

func (l *lister) directory(d workspace.Dir) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.ctx.Err(); err != nil {
			return fault.Wrap(fault.Canceled, err, "cannot list the changes")
		}
		entry, err := d.Entry(name)
		if err != nil {
			continue // vanished meanwhile
		}
		if err := l.one(d, name, entry); err != nil {
			return err
		}
	}
	l.byte(opEnd)
	return nil
}

func (l *lister) one(d workspace.Dir, name string, entry workspace.Entry) error {
	switch entry.Kind {
	case workspace.Directory:
		return l.below(d, name)
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
		l.begin(opRegular, name)
		l.entry(entry)
	case workspace.Whiteout:
		l.begin(opWhiteout, name)
	default:
		l.begin(opSpecial, name)
	}
	return nil
}

func (l *lister) below(d workspace.Dir, name string) error {
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
	properties := uint64(0)
	if below.Opaque() {
		properties |= opaque
	}
	if below.Repository() {
		properties |= repository
	}
	l.begin(opDirectory, name)
	l.number(properties)
	if name == ".git" {
		l.byte(opEnd)
		return nil
	}
	return l.directory(below)
}

func (l *lister) begin(op byte, name string) {
	l.count++
	l.byte(op)
	l.string(name)
}

// WriteFile sends a file: what it is, its holes, its bytes as they come, and
// what it is then. opening is the error of opening it, if there was one.
func WriteFile(w io.Writer, f workspace.File, opening error) error {
	e := encoder{bufio.NewWriter(w)}     // most files are small
	_, _ = e.w.WriteString(contentMagic) // Flush says what went wrong
	holes := int64(0)
	if opening == nil {
		// Looked for only where the disk holds less than the file has.
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
