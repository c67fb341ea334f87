package driver

import (
	"slices"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Program is the program that a sandbox's keeper runs from.
type Program string

// The programs of keepers.
const (
	ProgramSmall Program = "small" // the one that guests use too
	ProgramFull  Program = "full"  // with the client libraries of engines
)

// Entry is one driver that a program knows.
type Entry struct {
	Name    string
	Keeper  Program       // empty is ProgramSmall
	Make    func() Driver // called once, on first use
	Default bool          // new sandboxes have it unless another is chosen
	Hidden  bool          // for tests: found by its name, and listed nowhere
	Far     bool          // its places are in other machines, where its keeper installs an outpost

	// Shared is the driver whose places share one machine, where this one makes a
	// machine for each; empty without one.
	Shared string

	// Live is the driver of the live environments of humans whose sandboxes have this
	// one, where this one cannot show a directory of this machine; empty without one.
	Live string

	// One, when not nil, takes the place of Make: there is a driver for each of the
	// human's machines, called Name:MACHINE. It returns nil for a machine that does
	// not exist, and is asked again about it, because machines are added.
	One func(machine string) Driver
}

// Machines is the entry with the drivers of the human's machines.
const Machines = "machine"

// OnMachine returns the driver of places in a machine.
func OnMachine(machine string) string { return Machines + ":" + machine }

// MachineOf returns the machine of a driver; empty when it is none of the human's.
func MachineOf(name string) string {
	machine, _ := strings.CutPrefix(name, Machines+":")
	if machine == name {
		return ""
	}
	return machine
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

// Names lists the drivers in the order of the table, without hidden ones.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	var names []string
	for _, entry := range s.entries {
		if !entry.Hidden && entry.One == nil {
			names = append(names, entry.Name)
		}
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
		d := entry.made(name)
		if d == nil {
			return nil
		}
		s.made[name] = d
	}
	return s.made[name]
}

// made makes the driver called name.
func (e Entry) made(name string) Driver {
	if e.One == nil {
		return e.Make()
	}
	return e.One(MachineOf(name))
}

// Find is Get for a name that a human has chosen: an unknown one is an error
// that lists the existing ones.
func (s *Set) Find(name string) (Driver, error) {
	if d := s.Get(name); d != nil {
		return d, nil
	}
	if machine := MachineOf(name); machine != "" {
		return nil, fault.New(fault.NotFound, "there is no machine %q", machine).WithHint("litterbox machine list")
	}
	return nil, fault.New(fault.Invalid, "there is no driver %q", name).
		WithHint("one of: %s", strings.Join(s.Names(), ", "))
}

// Shared returns the driver of places that share a machine, for one that makes a
// machine for each; empty without one.
func (s *Set) Shared(name string) string {
	entry, _ := s.entry(name)
	return entry.Shared
}

// Live returns the driver of live environments beside a driver; empty if there is no
// other.
func (s *Set) Live(name string) string {
	entry, _ := s.entry(name)
	return entry.Live
}

// Keeper is the program that keeps sandboxes of that driver.
func (s *Set) Keeper(name string) Program {
	if entry, ok := s.entry(name); ok && entry.Keeper != "" {
		return entry.Keeper
	}
	return ProgramSmall
}

// Far reports whether the keeper of sandboxes of that driver needs the programs
// of outposts.
func (s *Set) Far(name string) bool {
	entry, _ := s.entry(name)
	return entry.Far
}

func (s *Set) entry(name string) (Entry, bool) {
	if s == nil {
		return Entry{}, false
	}
	at := slices.IndexFunc(s.entries, func(entry Entry) bool {
		return entry.Name == name && entry.One == nil || entry.One != nil && strings.HasPrefix(name, entry.Name+":")
	})
	if at < 0 {
		return Entry{}, false
	}
	return s.entries[at], true
}
