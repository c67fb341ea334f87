package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// Uninstall takes out what [Host.Install] wrote. An otherwise unchanged file
// becomes byte for byte what it was before, and is removed if there was none; from
// a changed one litterbox's parts are taken out, and the rest stays. Without a
// scope it means the project's, if litterbox is installed there, and else the
// user's. With All it means every client.
func (h Host) Uninstall(ctx context.Context, r Request) (Result, error) {
	clients := Clients()
	if !r.All {
		var err error
		if clients, err = h.chosen(r, "uninstall"); err != nil {
			return Result{}, err
		}
	}
	if !r.Print {
		lock, err := h.lock(ctx)
		if err != nil {
			return Result{}, err
		}
		defer lock.Close()
	}
	w := &work{host: h, repository: r.Repository, force: r.Force}
	result := Result{Next: []Step{}, Notes: []string{}}
	stays := w.staying(clients, r)
	for _, c := range clients {
		scopes, notes := w.installed(c, r)
		if r.All && len(scopes) > 0 {
			if s := h.look(c, scopes[0], r.Repository); s.State != StateInstalled {
				result.Notes = append(result.Notes, fmt.Sprintf("%s is left as it is: %s", c.Title, s.why()))
				continue
			}
		}
		if !r.All || len(scopes) > 0 {
			result.Notes = append(result.Notes, notes...)
		}
		for _, scope := range scopes {
			if err := w.uninstall(c, scope, stays); err != nil {
				return Result{}, err
			}
		}
		if len(scopes) > 0 {
			result.Next = append(result.Next, Step{c.Name, []string{"restart " + c.Title}})
		}
	}
	result.Changes = w.changes()
	if r.Print {
		return result, nil
	}
	return result, w.commit()
}

// installed gives the scopes that a request to uninstall means.
func (w *work) installed(c Client, r Request) (scopes []Scope, notes []string) {
	var there []Scope
	for _, scope := range []Scope{Project, User} {
		if s := w.host.look(c, scope, w.repository); s.State != "" && (scope == r.Scope || r.Scope == "") {
			there = append(there, scope)
		}
	}
	switch {
	case len(there) == 0:
		return nil, []string{fmt.Sprintf("litterbox is not installed for %s", c.Title)}
	case len(there) > 1:
		notes = []string{fmt.Sprintf("litterbox stays installed for %s in your own settings: litterbox agent uninstall %s --scope user", c.Title, c.Name)}
	}
	return there[:1], notes
}

// staying are the rules that other clients go on reading.
func (w *work) staying(leaving []Client, r Request) []string {
	var files []string
	for _, c := range Clients() {
		for _, scope := range []Scope{Project, User} {
			left := slices.ContainsFunc(leaving, func(other Client) bool { return other.Name == c.Name }) && (r.Scope == "" || r.Scope == scope)
			if path := c.rules(w.host, scope); path != "" && !left && w.host.look(c, scope, w.repository).State == StateInstalled {
				files = append(files, path)
			}
		}
	}
	return files
}

func (w *work) uninstall(c Client, scope Scope, stays []string) error {
	f, err := w.entryFile(c, scope)
	if err != nil {
		return err
	}
	doc, err := f.document(c.format)
	if err != nil {
		return err
	}
	value, there := doc.Get(c.path...)
	if there && !c.ours(value) && !w.force {
		return fault.New(fault.AlreadyExists, "cannot uninstall for %s: %s holds another entry %s, or one that was changed", c.Title, display(f.shown), strings.Join(c.path, ".")).
			WithHint("litterbox agent uninstall %s --force, which removes it", c.Name)
	}
	if c.exclusive != nil {
		if err := w.allow(c, scope, f); err != nil {
			return err
		}
	}
	f.undo()
	if err := f.takeOut(c.format, c.path, nil, c.fields(ServerName, true)); err != nil {
		return err
	}
	if err := f.takeAlso(c); err != nil {
		return err
	}
	f.sweep(c.format)
	if path := c.rules(w.host, scope); path != "" && !slices.Contains(stays, path) {
		return w.unrule(c, scope, path)
	}
	return nil
}

// allow takes the settings of the client's own permissions back. Without a
// record they are taken for litterbox's where all of them are there.
func (w *work) allow(c Client, scope Scope, entry *file) error {
	exclusive := w.host.look(c, scope, w.repository).Exclusive
	for _, s := range c.exclusive(w.host, scope) {
		f := entry
		if s.file != "" {
			var err error
			if f, err = w.open(c.Name, scope, s.file); err != nil {
				return err
			}
		}
		f.undo()
		if s.whole != "" {
			f.gone = f.gone || string(f.now) == s.whole
			continue
		}
		known := slices.ContainsFunc(f.record.Added, func(a added) bool { return slices.Equal(a.Path, s.path) })
		if known || exclusive && len(f.record.Added) == 0 {
			if err := f.takeOut(s.format, s.path, s.items, s.value); err != nil {
				return err
			}
		}
		if f != entry {
			f.sweep(s.format)
		}
	}
	return nil
}

// undo restores the earlier bytes, where they are known.
func (f *file) undo() {
	if before, ok := f.record.undo(f.now); ok {
		f.now = before
		f.gone = f.record.Created && len(before) == 0
		f.record.Steps = nil
	}
	f.fresh = true
}

// takeOut removes a value, or puts back what it replaced, or removes items of a
// list. Only what the record says was added is removed, or everything without a
// record.
func (f *file) takeOut(format patch.Format, path, items []string, value any) error {
	if f.gone {
		return nil
	}
	doc, err := f.document(format)
	if err != nil {
		return err
	}
	now, there := doc.Get(path...)
	if !there {
		return nil
	}
	var known *added
	for i, a := range f.record.Added {
		if slices.Equal(a.Path, path) {
			known = &f.record.Added[i]
		}
	}
	var splices []patch.Splice
	_, entry := value.(patch.Object)
	switch {
	case items != nil:
		if known != nil {
			items = known.Items
		}
		splices, err = doc.Drop(path, items)
	case !entry && !patch.Same(now, value): // the human has set it to something else
	case known != nil && known.Old != "":
		splices, err = doc.Set(path, patch.Raw(known.Old))
	default:
		splices, err = doc.Remove(path)
	}
	if err != nil {
		return f.byHand(err)
	}
	changed, err := patch.Apply(f.now, splices)
	if err != nil {
		return fault.Wrap("", err, "cannot change %s", display(f.shown))
	}
	f.now = changed
	return nil
}

// takeAlso takes out values that the client would have added by itself: where they
// are recorded, and where nothing else is left.
func (f *file) takeAlso(c Client) error {
	for _, s := range c.also {
		known, had := slices.ContainsFunc(f.record.Added, func(a added) bool { return slices.Equal(a.Path, s.path) }), f.now
		if err := f.takeOut(s.format, s.path, nil, s.value); err != nil {
			return err
		}
		if doc, err := patch.Open(s.format, f.now); !known && (err != nil || !doc.Empty()) {
			f.now = had
		}
	}
	return nil
}

// sweep removes a file in which nothing is left, unless it was there before
// litterbox was.
func (f *file) sweep(format patch.Format) {
	if f.gone || string(f.now) == string(f.before) || !f.record.Created && f.record.After != "" {
		return
	}
	if doc, err := patch.Open(format, f.now); err == nil && doc.Empty() {
		f.gone = true
	}
}

// unrule takes the rules out.
func (w *work) unrule(c Client, scope Scope, path string) error {
	f, err := w.open(c.Name, scope, path)
	if err != nil {
		return err
	}
	f.undo()
	if f.gone {
		return nil
	}
	splices, err := removeRules(f.now)
	if err != nil {
		return fault.Wrap("", err, "cannot change %s", display(f.shown)).WithHint("remove the marks from it")
	}
	if f.now, err = patch.Apply(f.now, splices); err != nil {
		return fault.Wrap("", err, "cannot change %s", display(f.shown))
	}
	f.gone = f.before != nil && len(f.now) == 0 && len(splices) > 0 && (f.record.Created || f.record.After == "")
	return nil
}
