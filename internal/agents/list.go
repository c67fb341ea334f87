package agents

import (
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// Status is what is known about one client.
type Status struct {
	Agent     string      `json:"agent"`
	Title     string      `json:"title"`
	Found     bool        `json:"found"`
	At        string      `json:"at,omitempty"` // what shows that it is here
	Installed []Installed `json:"installed"`
	// Denies reports whether --exclusive exists for it.
	Denies bool `json:"can_be_exclusive"`
}

// State is the state of an entry.
type State string

// The states; "" if there is none.
const (
	StateInstalled State = "installed"
	StateForeign   State = "foreign" // an entry of that name that litterbox did not write, or a changed one
	StateBroken    State = "broken"  // the file cannot be read
)

// Installed is litterbox in the settings of a client.
type Installed struct {
	Scope     Scope  `json:"scope"`
	File      string `json:"file"`
	State     State  `json:"state"`
	Exclusive bool   `json:"exclusive"`
	Rules     bool   `json:"rules"`
	Problem   string `json:"problem,omitempty"`
}

// why says why an entry is not litterbox's.
func (i Installed) why() string {
	if i.State == StateBroken {
		return i.Problem
	}
	return "the entry " + ServerName + " in " + display(i.File) + " is another one, or was changed"
}

// List tells for each client whether it is on this machine, and where litterbox
// is in its settings. It changes nothing; repository may be "".
func (h Host) List(repository string) []Status {
	var all []Status
	for _, c := range Clients() {
		s := Status{Agent: c.Name, Title: c.Title, Installed: []Installed{}, Denies: c.exclusive != nil}
		s.At, s.Found = c.Found(h)
		for _, scope := range []Scope{Project, User} {
			if found := h.look(c, scope, repository); found.State != "" {
				s.Installed = append(s.Installed, found)
			}
		}
		all = append(all, s)
	}
	return all
}

// look reads the settings of a client.
func (h Host) look(c Client, scope Scope, repository string) Installed {
	found := Installed{Scope: scope}
	if len(c.config(h, scope)) == 0 || scope == Project && repository == "" {
		return found
	}
	w := &work{host: h, repository: repository}
	broken := func(err error) Installed {
		found.State, found.Problem = StateBroken, err.Error()
		return found
	}
	f, err := w.entryFile(c, scope)
	if err != nil {
		found.File = c.config(h, scope)[0]
		return broken(err)
	}
	found.File = f.shown
	doc, err := f.document(c.format)
	if err != nil {
		return broken(err)
	}
	value, there := doc.Get(c.path...)
	switch {
	case there && c.ours(value):
		found.State = StateInstalled
	case there:
		found.State = StateForeign
	}
	found.Exclusive = there && c.exclusive != nil
	if found.Exclusive {
		for _, s := range c.exclusive(h, scope) {
			if found.Exclusive = w.holds(f, c, scope, s); !found.Exclusive {
				break
			}
		}
	}
	if path := c.rules(h, scope); path != "" && there {
		if f, err := w.open(c.Name, scope, path); err == nil {
			_, _, found.Rules, _ = rulesAt(f.now)
		}
	}
	return found
}

// holds reports whether a setting is there.
func (w *work) holds(f *file, c Client, scope Scope, s setting) bool {
	if s.file != "" {
		var err error
		if f, err = w.open(c.Name, scope, s.file); err != nil {
			return false
		}
	}
	if s.whole != "" {
		return string(f.now) == s.whole
	}
	doc, err := f.document(s.format)
	if err != nil {
		return false
	}
	value, there := doc.Get(s.path...)
	if s.items == nil {
		return there && patch.Same(value, s.value)
	}
	list, _ := value.([]any)
	for _, item := range s.items {
		found := false
		for _, one := range list {
			found = found || one == any(item)
		}
		if !found {
			return false
		}
	}
	return true
}
