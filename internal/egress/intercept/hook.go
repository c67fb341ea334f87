package intercept

import (
	"net/http"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// Hook takes part in the exchanges of a sandbox with hosts: it sees each
// admitted request as it leaves, and the answer as it comes back. The methods
// are called from many goroutines.
//
// Hooks form a row, [Options.Hooks], the first nearest to the sandbox and the
// last nearest to the host. The hook that puts secrets in comes after all hooks
// that must never see a value, neither on the way out nor where a host echoes
// it. Only the one that renews logins comes after it.
//
// To add a hook: a type with these two methods in a package of its own, and its
// place in the row where the keeper opens the network.
type Hook interface {
	// Wants reports whether the exchanges with a host must be looked at although
	// no rule mentions requests. host is canonical, or an address. protocol is
	// egress.HTTPS or egress.HTTP where the first bytes were seen. It is empty
	// before them, where a rule lets the connection go without a look; then host
	// is empty too while only an address is known whose name the first bytes may
	// say. Where the answer is yes and the bytes are neither TLS nor HTTP, they
	// go on as they would have, but a server that speaks first has waited for
	// [egress.Options.HeadTimeout]: say yes only where the web is expected.
	// Wants is asked for each connection.
	Wants(host string, port uint16, protocol string) bool
	// Wrap is called once for each connection of the sandbox that is looked at,
	// for any reason. It returns the transport that sends the requests of that
	// connection through next, or next itself where it wants none of them.
	//
	// What it returns may change the request (which belongs to the hook) and
	// read or replace its body, also as it streams; refuse it with [Deny], or
	// answer it with a response of its own, without calling next; and replace
	// the response's body to see or change what streams back. It must bound a
	// body that it reads to the end before passing it on. It must pass on each
	// piece of a stream as it comes: clients wait for it.
	//
	// After a switch of protocols (status 101) the response's body is an
	// io.ReadWriteCloser, both directions of the connection, and its
	// replacement must be one too. Trailers of both sides are filled in when
	// their bodies have ended. Informational responses (1xx) bypass hooks,
	// unless they use httptrace.
	Wrap(s *egress.Session, next http.RoundTripper) http.RoundTripper
}

// Insister is a hook that can insist on a look: nothing goes to the host unseen,
// neither as bytes other than HTTP nor under another name. If it begins to
// insist while connections live, those that were not looked at end once
// [egress.Proxy.Recheck] is called.
type Insister interface {
	Insists(host string, port uint16) bool
}

// RoundTrip is an http.RoundTripper from a function.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Deny refuses a request in a hook: it records why, and returns the error to
// return, for which the sandbox reads the reason with status 403.
func Deny(s *egress.Session, r *http.Request, why string) error {
	s.Refuse(egress.Request{Method: r.Method, Path: r.URL.RequestURI()}, why)
	return &egress.Refused{Why: why}
}

// wrap builds the row of hooks in front of what dials.
func wrap(hooks []Hook, s *egress.Session, last http.RoundTripper) http.RoundTripper {
	for n := len(hooks) - 1; n >= 0; n-- {
		last = hooks[n].Wrap(s, last)
	}
	return last
}

// Wants implements egress.Inspector.
func (i *Inspector) Wants(host string, port uint16, protocol string) bool {
	return slices.ContainsFunc(i.o.Hooks, func(hook Hook) bool { return hook.Wants(host, port, protocol) })
}

// Insists implements egress.Inspector.
func (i *Inspector) Insists(host string, port uint16) bool {
	return slices.ContainsFunc(i.o.Hooks, func(hook Hook) bool {
		insister, ok := hook.(Insister)
		return ok && insister.Insists(host, port)
	})
}
