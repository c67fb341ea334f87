package secret

import (
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Spec is one secret as a configuration has it, [secrets.NAME].
type Spec struct {
	Name  string  `json:"name"` // the variable that holds the placeholder inside
	From  Source  `json:"from"`
	Hosts []Host  `json:"hosts"`
	In    []Place `json:"in"` // never empty
}

// Place is where in a request a placeholder is replaced.
type Place string

// The places.
const (
	Header Place = "header" // any header, as text
	Query  Place = "query"  // the part of the URL after the question mark
	Body   Place = "body"   // the content, and the messages of a WebSocket
	Basic  Place = "basic"  // user name or password of HTTP's Basic scheme, which are in Base64
)

// Places are all of them.
func Places() []Place { return []Place{Header, Query, Body, Basic} }

// ParsePlace reads a place.
func ParsePlace(text string) (Place, error) {
	if place := Place(text); slices.Contains(Places(), place) {
		return place, nil
	}
	return "", fault.New(fault.Invalid, "cannot use the place %q: it is header, query, body or basic", text)
}

// Binding is a secret of one sandbox: what the keeper must know, without the
// value. It may be stored on disk.
type Binding struct {
	Spec
	// Placeholder stands for the value inside. It is empty while the source had
	// no value when the sandbox was started: then there is nothing to put in
	// and nothing to guard.
	Placeholder string `json:"placeholder,omitempty"`
	// Routes narrow where on a host the value goes; a host without one has no
	// bound.
	Routes []Route `json:"routes,omitempty"`
}

// Route is the paths of a host that a value goes to: those below one of Under,
// where it is not empty, and none below Never.
type Route struct {
	Host  Host     `json:"host"`
	Under []string `json:"under,omitempty"`
	Never []string `json:"never,omitempty"`
}

// Takes reports whether the value may be sent with a request for a path, given
// as it will be sent. A path that servers may read in two ways is below no
// route.
func (b *Binding) Takes(host string, port uint16, plain bool, path string) bool {
	if !b.For(host, port, plain) {
		return false
	}
	for _, route := range b.Routes {
		if !route.Host.Matches(host, port, plain) {
			continue
		}
		below := func(prefix string) bool { return egress.Below(prefix, path) }
		_, clean := egress.CleanPath(path)
		if !clean || slices.ContainsFunc(route.Never, below) || len(route.Under) > 0 && !slices.ContainsFunc(route.Under, below) {
			return false
		}
	}
	return true
}

// For reports whether the value may be sent to a host.
func (b *Binding) For(host string, port uint16, plain bool) bool {
	return b.Placeholder != "" && slices.ContainsFunc(b.Hosts, func(h Host) bool { return h.Matches(host, port, plain) })
}

// Replaces reports whether the placeholder is replaced in a place.
func (b *Binding) Replaces(place Place) bool { return slices.Contains(b.In, place) }

// longestName bounds the name of a secret.
const longestName = 128

// ValidName reports whether a name can be that of a secret: it is the name of a
// variable inside.
func ValidName(name string) bool {
	if name == "" || len(name) > longestName || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
