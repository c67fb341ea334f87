package driver

import (
	"slices"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Program is what the keeper of a sandbox runs from.
type Program string

// The programs of keepers.
const (
	ProgramSmall Program = "small" // the one that is carried for guests too
	ProgramFull  Program = "full"  // with the client libraries of engines
)

// Entry is one driver that a program knows.
type Entry struct {
	Name    string
	Keeper  Program       // empty is ProgramSmall
	Make    func() Driver // called when it is first used, once
	Default bool          // new sandboxes have it unless another one is chosen
}

// Set is the drivers of a program, by name. It is safe for concurrent use; nil
// is an empty one.
type Set struct {
	entries []Entry
	mu      sync.Mutex
	made    map[string]Driver
}

// NewSet makes a set of the entries, whose names differ.
func NewSet(entries ...Entry) *Set { return &Set{entries: entries, made: map[string]Driver{}} }

// Names lists the drivers in the order of the table.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	var names []string
	for _, entry := range s.entries {
		names = append(names, entry.Name)
	}
	return names
}

// Default is the name of the driver of new sandboxes; empty without one.
func (s *Set) Default() string {
	if s == nil {
		return ""
	}
	for _, entry := range s.entries {
		if entry.Default {
			return entry.Name
		}
	}
	return ""
}

// Get returns the driver of that name, nil when there is none.
func (s *Set) Get(name string) Driver {
	entry, ok := s.entry(name)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[name] == nil {
		s.made[name] = entry.Make()
	}
	return s.made[name]
}

// Find is Get for a name that a human has chosen: an unknown one is an error
// that lists those there are.
func (s *Set) Find(name string) (Driver, error) {
	if d := s.Get(name); d != nil {
		return d, nil
	}
	return nil, fault.New(fault.Invalid, "there is no driver %q; those there are: %s", name, strings.Join(s.Names(), ", ")).
		WithHint("litterbox doctor")
}

// Keeper is the program that keeps sandboxes of that driver.
func (s *Set) Keeper(name string) Program {
	if entry, ok := s.entry(name); ok && entry.Keeper != "" {
		return entry.Keeper
	}
	return ProgramSmall
}

func (s *Set) entry(name string) (Entry, bool) {
	if s == nil {
		return Entry{}, false
	}
	at := slices.IndexFunc(s.entries, func(entry Entry) bool { return entry.Name == name })
	if at < 0 {
		return Entry{}, false
	}
	return s.entries[at], true
}
