package secret

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// Fetch reads a value from its source. The caller wipes it. Its errors never show
// a value.
type Fetch func(ctx context.Context) ([]byte, error)

// Set is the secrets of one running sandbox, with the functions that fetch their
// values. It is safe for concurrent use, and may change at any time.
type Set struct {
	mu    sync.Mutex
	state atomic.Pointer[State]
}

// State is a set at one moment. It does not change.
type State struct {
	Bound []*Bound
	marks *replace.Table // finds placeholders; its IDs are indices of Bound
}

// NewSet makes an empty set.
func NewSet() *Set {
	s := &Set{}
	s.state.Store(newState(nil))
	return s
}

func newState(bound []*Bound) *State {
	var pairs []replace.Pair
	for n, b := range bound {
		if b.Placeholder != "" {
			pairs = append(pairs, replace.Forms([]byte(b.Placeholder), []byte(b.Placeholder), n, nil)...)
		}
	}
	return &State{Bound: bound, marks: replace.New(pairs)}
}

// State gives the set as it is now.
func (s *Set) State() *State { return s.state.Load() }

// Bind adds a secret, replacing one of the same name. The values of others stay
// as they are.
func (s *Set) Bind(binding Binding, fetch Fetch) *Bound {
	bound := newBound(binding, fetch)
	s.change(binding.Name, bound)
	return bound
}

// BindFresh is Bind for a value that others change at any time, so that the last
// one may no longer count: it is fetched for each use.
func (s *Set) BindFresh(binding Binding, fetch Fetch) {
	bound := newBound(binding, fetch)
	bound.fresh = true
	s.change(binding.Name, bound)
}

// Remove removes a secret. Requests under way with its value go on.
func (s *Set) Remove(name string) { s.change(name, nil) }

func (s *Set) change(name string, with *Bound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bound := slices.Clone(s.state.Load().Bound)
	bound = slices.DeleteFunc(bound, func(b *Bound) bool {
		if b.Name == name {
			b.Forget()
		}
		return b.Name == name
	})
	if with != nil {
		bound = append(bound, with)
	}
	slices.SortFunc(bound, func(a, b *Bound) int { return strings.Compare(a.Name, b.Name) })
	s.state.Store(newState(bound))
}

// For are the secrets whose values may be sent to a host.
func (s *State) For(host string, port uint16, plain bool) []*Bound {
	var all []*Bound
	for _, b := range s.Bound {
		if b.For(host, port, plain) {
			all = append(all, b)
		}
	}
	return all
}

// Taking are the secrets whose values may be sent with a request for a path.
func (s *State) Taking(host string, port uint16, plain bool, path string) []*Bound {
	return slices.DeleteFunc(s.For(host, port, plain), func(b *Bound) bool { return !b.Takes(host, port, plain, path) })
}

// Empty reports whether nothing has a placeholder.
func (s *State) Empty() bool { return s.marks.Empty() }

// Inspects reports whether some value goes over TLS, so that the sandbox must
// trust an authority of its own.
func (s *State) Inspects() bool {
	return slices.ContainsFunc(s.Bound, func(b *Bound) bool {
		return b.Placeholder != "" && slices.ContainsFunc(b.Hosts, func(h Host) bool { return !h.plain })
	})
}

// Wants answers for intercept.Hook: hosts that values go to, and all HTTP without
// TLS, which is searched for placeholders.
func (s *State) Wants(host string, port uint16, protocol string) bool {
	if s.Empty() {
		return false
	}
	switch protocol {
	case egress.HTTP:
		return true
	case egress.HTTPS:
		return len(s.For(host, port, false)) > 0
	}
	return port == 80 || slices.ContainsFunc(s.Bound, func(b *Bound) bool {
		return b.Placeholder != "" && slices.ContainsFunc(b.Hosts, func(h Host) bool {
			return h.port == port && (host == "" || h.Matches(host, port, h.plain))
		})
	})
}

// Marks finds the placeholders, in all forms in which programs write them. The
// IDs that it gives are indices of Bound.
func (s *State) Marks() *replace.Table { return s.marks }
