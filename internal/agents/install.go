package agents

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// Request asks to install or uninstall.
type Request struct {
	Repository string // its top directory; "" outside of one
	Names      []string
	All        bool  // every client that is found on this machine
	Scope      Scope // "" for the project's where the client has one
	Exclusive  bool
	Rules      bool
	Force      bool // also over what others put there
	Print      bool // plan only
}

// Result is the changes made, or those planned.
type Result struct {
	Changes []Change `json:"changes"`
	Next    []Step   `json:"next"`
	Notes   []string `json:"notes"`
}

// Step is what the human must do for one client.
type Step struct {
	Agent string   `json:"agent"`
	Steps []string `json:"steps"`
}

// Install writes the entry for the server into the settings of clients, and with
// Exclusive and Rules the permissions and the rules. Installing twice changes
// nothing; an existing entry stays, with its permissions and rules. If a request is
// impossible for a client, nothing is written for it; with All the other clients
// are installed all the same.
func (h Host) Install(ctx context.Context, r Request) (Result, error) {
	clients, err := h.chosen(r, "install")
	if err != nil {
		return Result{}, err
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
	var left []error
	for _, c := range clients {
		scope, err := h.scope(c, r)
		if err == nil {
			err = possible(h, c, scope, r)
		}
		if err == nil {
			err = w.install(c, scope, r)
		}
		switch {
		case err != nil && r.All && fault.KindOf(err) == fault.Unsupported:
			left = append(left, err)
			continue
		case err != nil:
			return Result{}, err
		}
		exclusive := r.Exclusive
		if scope == User && exclusive {
			result.Notes = append(result.Notes, fmt.Sprintf("%s is denied its own tools wherever you use it, not only in this repository; --scope project is for this one", c.Title))
		}
		result.Next = append(result.Next, Step{c.Name, c.next(scope, exclusive)})
	}
	result.Changes = w.changes()
	result.Notes = append(result.Notes, h.reachable(w)...)
	if !r.Print {
		err = w.commit()
	}
	return result, errors.Join(append(left, err)...)
}

// chosen are the clients that a request means.
func (h Host) chosen(r Request, verb string) ([]Client, error) {
	var clients []Client
	if r.All {
		for _, c := range Clients() {
			if _, found := c.Found(h); found {
				clients = append(clients, c)
			}
		}
		if len(clients) == 0 {
			return nil, fault.New(fault.NotFound, "none of the agents that litterbox knows is on this machine: %s", strings.Join(Names(), ", ")).
				WithHint("litterbox agent install claude")
		}
		return clients, nil
	}
	for _, name := range r.Names {
		c, err := byName(name, verb)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(clients, func(other Client) bool { return other.Name == c.Name }) {
			clients = append(clients, c)
		}
	}
	return clients, nil
}

// scope is the one that a request means for a client.
func (h Host) scope(c Client, r Request) (Scope, error) {
	scope := r.Scope
	if scope == "" {
		if scope = Project; len(c.config(h, Project)) == 0 || r.Repository == "" {
			scope = User
		}
	}
	if len(c.config(h, scope)) == 0 {
		return "", fault.New(fault.Unsupported, "%s has no settings for a project", c.Title).
			WithHint("litterbox agent install %s --scope user", c.Name)
	}
	if scope == Project && r.Repository == "" {
		return "", fault.New(fault.NotFound, "cannot install for a project: this is no git repository").
			WithHint("litterbox -C DIR agent install %s, or --scope user", c.Name)
	}
	return scope, nil
}

// possible says what a client does not have.
func possible(h Host, c Client, scope Scope, r Request) error {
	if r.Exclusive && c.exclusive == nil {
		return fault.New(fault.Unsupported, "cannot make litterbox the only tool of %s, nothing was written: %s", c.Title, c.without).
			WithHint("litterbox agent install %s", c.Name)
	}
	if r.Rules && c.rules(h, scope) == "" {
		return fault.New(fault.Unsupported, "%s reads no file with rules of yours, nothing was written: paste them into its settings", c.Title).
			WithHint("litterbox agent install %s --scope project --rules", c.Name)
	}
	return nil
}

// install plans one client.
func (w *work) install(c Client, scope Scope, r Request) error {
	f, err := w.entryFile(c, scope)
	if err != nil {
		return err
	}
	if err := w.enter(f, c, r.Exclusive); err != nil {
		return err
	}
	if err := w.add(f, c); err != nil {
		return err
	}
	if r.Exclusive {
		for _, s := range c.exclusive(w.host, scope) {
			at := f
			if s.file != "" {
				if at, err = w.open(c.Name, scope, s.file); err != nil {
					return err
				}
			}
			if err := w.deny(at, c, s); err != nil {
				return err
			}
		}
	}
	if !r.Rules {
		return nil
	}
	rules, err := w.open(c.Name, scope, c.rules(w.host, scope))
	if err != nil {
		return err
	}
	splices, err := addRules(rules.now)
	if err != nil {
		return fault.Wrap("", err, "cannot change %s", display(rules.shown)).WithHint("remove the marks from it")
	}
	return rules.step(splices)
}

// entryFile opens the file for the entry: the first that exists, and the first
// of all where none does.
func (w *work) entryFile(c Client, scope Scope) (*file, error) {
	paths := c.config(w.host, scope)
	for _, path := range paths {
		p, err := locate(w.repository, scope, path)
		if err != nil {
			return nil, err
		}
		if content, err := p.read(); err != nil {
			return nil, err
		} else if content != nil {
			return w.open(c.Name, scope, path)
		}
	}
	return w.open(c.Name, scope, paths[0])
}

// enter plans the entry for the server.
func (w *work) enter(f *file, c Client, exclusive bool) error {
	doc, err := f.document(c.format)
	if err != nil {
		return err
	}
	want := c.fields(w.command(f.scope), exclusive)
	value, there := doc.Get(c.path...)
	if !there || !c.ours(value) {
		if there && !w.force {
			return fault.New(fault.AlreadyExists, "cannot install for %s: %s holds another entry %s, or one that was changed", c.Title, display(f.shown), strings.Join(c.path, ".")).
				WithHint("litterbox agent install %s --force, which replaces it", c.Name)
		}
		return f.set(c.format, c.path, want)
	}
	// It is litterbox's own: missing fields are added, further ones stay.
	fields, _ := patch.Plain(value).(map[string]any)
	if c.format == patch.YAML && !patch.Same(fields, want) {
		return f.set(c.format, c.path, want)
	}
	for _, field := range want {
		if !patch.Same(fields[field.Key], field.Value) {
			if err := f.set(c.format, append(slices.Clone(c.path), field.Key), field.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// add plans the values that the client would add by itself.
func (w *work) add(f *file, c Client) error {
	for _, s := range c.also {
		doc, err := f.document(s.format)
		if err != nil {
			return err
		}
		if _, there := doc.Get(s.path...); there {
			continue
		}
		if err := f.set(s.format, s.path, s.value); err != nil {
			return err
		}
	}
	return nil
}

// ours reports whether litterbox wrote an entry, wherever the program was then.
func (c Client) ours(value any) bool {
	fields, ok := patch.Plain(value).(map[string]any)
	if !ok {
		return false
	}
	command := ""
	for _, key := range []string{"command", "cmd"} {
		switch v := fields[key].(type) {
		case string:
			command = v
		case []any:
			if len(v) > 0 {
				command, _ = v[0].(string)
			}
		}
	}
	if filepath.Base(command) != ServerName {
		return false
	}
	return patch.Same(fields, c.fields(command, false)) || patch.Same(fields, c.fields(command, true))
}

// deny plans one setting of the client's own permissions.
func (w *work) deny(f *file, c Client, s setting) error {
	if s.items != nil {
		return f.append(s.format, s.path, s.items)
	}
	if s.whole != "" {
		return w.fill(f, c, s.whole)
	}
	doc, err := f.document(s.format)
	if err != nil {
		return err
	}
	if now, there := doc.Get(s.path...); there && !patch.Same(now, s.value) && !w.force {
		return fault.New(fault.Conflict, "cannot make litterbox the only tool of %s: %s sets %s to something other than %q", c.Title, display(f.shown), strings.Join(s.path, "."), s.value).
			WithHint("litterbox agent install %s --exclusive --force, which replaces it until you uninstall", c.Name)
	}
	return f.set(s.format, s.path, s.value)
}

// fill plans a file that is litterbox's as a whole.
func (w *work) fill(f *file, c Client, content string) error {
	switch {
	case string(f.now) == content:
		return nil
	case len(f.now) > 0 && !w.force:
		return fault.New(fault.Conflict, "cannot make litterbox the only tool of %s: %s holds something else", c.Title, display(f.shown)).
			WithHint("litterbox agent install %s --exclusive --force, which replaces it until you uninstall", c.Name)
	}
	return f.step([]patch.Splice{{At: 0, Old: string(f.now), New: content}})
}

// command is how clients start litterbox: by its name, which works for everyone in
// the repository, or by its path for a user where only that is known.
func (w *work) command(scope Scope) string {
	if _, err := w.host.Find(ServerName); err != nil && scope == User && filepath.IsAbs(w.host.Self) && filepath.Base(w.host.Self) == ServerName {
		return w.host.Self
	}
	return ServerName
}

// reachable warns where clients will not find the program.
func (h Host) reachable(w *work) []string {
	if _, err := h.Find(ServerName); err == nil || !slices.ContainsFunc(w.files, func(f *file) bool { return f.scope == Project }) {
		return nil
	}
	return []string{fmt.Sprintf("clients start %q, which your PATH does not find: put %s into a directory of it", ServerName, display(h.Self))}
}
