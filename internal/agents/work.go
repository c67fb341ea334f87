package agents

import (
	"bytes"
	"errors"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// Change is the change of one file.
type Change struct {
	Agent  string   `json:"agent"`
	Scope  Scope    `json:"scope"`
	File   string   `json:"file"`
	Action Action   `json:"action"`
	Lines  []string `json:"lines"` // added (+) and removed (-)
}

// Action is what is done to a file.
type Action string

// The actions.
const (
	Created   Action = "created"
	Changed   Action = "changed"
	Removed   Action = "removed"
	Unchanged Action = "unchanged"
)

// work is everything that a command will do: it is all planned before anything is
// written, so that a failure leaves nothing half-done.
type work struct {
	host       Host
	repository string
	force      bool
	files      []*file
}

// file is one file on the way.
type file struct {
	place
	agent  string
	before []byte // nil where there is none
	now    []byte
	record record
	gone   bool // it is to be removed
	fresh  bool // the record is to be forgotten
}

// open reads a file, or gives the one that is open already.
func (w *work) open(agent string, scope Scope, path string) (*file, error) {
	p, err := locate(w.repository, scope, path)
	if err != nil {
		return nil, err
	}
	for _, f := range w.files {
		if f.full == p.full {
			return f, nil
		}
	}
	content, err := p.read()
	if err != nil {
		return nil, err
	}
	f := &file{place: p, agent: agent, before: content, now: content, record: w.host.recorded(p.full)}
	if content == nil {
		// Deleting the file has undone it all.
		f.record = record{Version: 1, File: p.full, Created: true}
	} else if len(f.record.Steps) > 0 && hash(content) != f.record.After {
		f.record.Steps = nil // they are for other bytes
	}
	w.files = append(w.files, f)
	return f, nil
}

// document reads the file's present content.
func (f *file) document(format patch.Format) (patch.Document, error) {
	doc, err := patch.Open(format, f.now)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot understand %s", display(f.shown)).
			WithHint("fix that line, or move the file away: mv %s %s", display(f.full), display(f.full+".broken"))
	}
	return doc, nil
}

// step carries out splices on the file's present content.
func (f *file) step(splices []patch.Splice) error {
	if len(splices) == 0 {
		return nil
	}
	changed, err := patch.Apply(f.now, splices)
	if err != nil {
		return fault.Wrap("", err, "cannot change %s", display(f.shown))
	}
	f.now = changed
	f.record.Steps = append(f.record.Steps, splices)
	return nil
}

// set puts a value in, and remembers the text that was there.
func (f *file) set(format patch.Format, path []string, value any) error {
	doc, err := f.document(format)
	if err != nil {
		return err
	}
	splices, err := doc.Set(path, value)
	if err != nil {
		return f.byHand(err)
	}
	if len(splices) > 0 {
		f.remember(added{Path: path, Old: doc.Raw(path...)})
	}
	return f.step(splices)
}

// append puts strings into a list.
func (f *file) append(format patch.Format, path, items []string) error {
	doc, err := f.document(format)
	if err != nil {
		return err
	}
	splices, err := doc.Append(path, items)
	if err != nil {
		return f.byHand(err)
	}
	if len(splices) > 0 {
		value, _ := doc.Get(path...)
		had, _ := value.([]any)
		f.remember(added{Path: path, Items: slices.DeleteFunc(slices.Clone(items), func(item string) bool {
			return slices.Contains(had, any(item))
		})})
	}
	return f.step(splices)
}

func (f *file) remember(a added) {
	for i, known := range f.record.Added {
		if slices.Equal(known.Path, a.Path) {
			f.record.Added[i].Items = append(known.Items, a.Items...)
			return // the first text counts
		}
	}
	f.record.Added = append(f.record.Added, a)
}

func (f *file) byHand(err error) error {
	return fault.Wrap(fault.Conflict, err, "cannot change %s", display(f.shown)).
		WithHint("change it by hand; --print with another directory shows what belongs there")
}

// change says what happens to the file.
func (f *file) change() Change {
	c := Change{Agent: f.agent, Scope: f.scope, File: f.shown, Lines: []string{}}
	switch {
	case f.gone && f.before == nil || !f.gone && f.before != nil && bytes.Equal(f.before, f.now) || !f.gone && f.before == nil && f.now == nil:
		c.Action = Unchanged
		return c
	case f.gone:
		c.Action = Removed
		c.Lines = compare(f.before, nil)
		return c
	case f.before == nil:
		c.Action = Created
	default:
		c.Action = Changed
	}
	c.Lines = compare(f.before, f.now)
	return c
}

// changes lists what will happen.
func (w *work) changes() []Change {
	all := []Change{}
	for _, f := range w.files {
		all = append(all, f.change())
	}
	return all
}

// commit writes everything. The records come first: a record of a step that was
// not taken does no harm, because it names the bytes it is for.
func (w *work) commit() error {
	var problems []error
	for _, f := range w.files {
		problems = append(problems, w.host.carryOut(f))
	}
	var made []string
	for _, f := range w.files {
		if f.gone {
			made = append(made, f.record.Made...)
		}
	}
	clearAway(made)
	return errors.Join(problems...)
}

func (h Host) carryOut(f *file) error {
	switch f.change().Action {
	case Unchanged:
		if f.fresh {
			return h.forget(f.full)
		}
		return nil
	case Removed:
		if err := f.remove(f.before); err != nil {
			return err
		}
		return h.forget(f.full)
	}
	f.record.After = hash(f.now)
	if f.fresh {
		if _, err := f.write(f.before, f.now); err != nil {
			return err
		}
		return h.forget(f.full)
	}
	if err := h.keep(f.record); err != nil {
		return err
	}
	made, err := f.write(f.before, f.now)
	if err == nil && len(made) > 0 {
		f.record.Made = append(f.record.Made, made...)
		err = h.keep(f.record)
	}
	return err
}
