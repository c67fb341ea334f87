package inject

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// Hook implements intercept.Hook for the secrets of one sandbox.
type Hook struct{ set *secret.Set }

var _ intercept.Hook = (*Hook)(nil)

// New makes a hook. The set may change while it works.
func New(set *secret.Set) *Hook { return &Hook{set} }

// Wants implements intercept.Hook.
func (h *Hook) Wants(host string, port uint16, protocol string) bool {
	return h.set.State().Wants(host, port, protocol)
}

// Wrap implements intercept.Hook.
func (h *Hook) Wrap(s *egress.Session, next http.RoundTripper) http.RoundTripper {
	return intercept.RoundTrip(func(r *http.Request) (*http.Response, error) {
		state := h.set.State()
		if state.Empty() {
			return next.RoundTrip(r)
		}
		x := &exchange{state: state, session: s, bound: state.Taking(s.Name, s.Port, s.Plain, r.URL.RequestURI())}
		return x.carry(r, next)
	})
}

// exchange is one request with its answer.
type exchange struct {
	state   *secret.State
	session *egress.Session
	bound   []*secret.Bound // those that may be sent to the host
	held    []*secret.Held  // their values
	refusal refusal
}

func (x *exchange) carry(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if name := x.foreign(r); name != "" {
		return nil, intercept.Deny(x.session, r, x.elsewhere(name))
	}
	if err := x.hold(r.Context()); err != nil {
		return nil, intercept.Deny(x.session, r, cannotRead(err))
	}
	defer x.release()
	x.refusal.deny = func(why string) error { return intercept.Deny(x.session, r, why) }
	if err := x.outgoing(r); err != nil {
		return nil, err
	}
	if len(x.held) > 0 {
		r = x.watchInformational(r)
	}
	response, err := next.RoundTrip(r)
	if refused := x.refusal.error(); refused != nil {
		if err == nil {
			_ = response.Body.Close() // of an answer that is not passed on
		}
		return nil, refused
	}
	if err != nil {
		return nil, x.clean(err)
	}
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		for _, b := range x.bound {
			b.Forget() // it may have been rotated
		}
	}
	if err := x.incoming(r, response); err != nil {
		_ = response.Body.Close() // likewise
		return nil, err
	}
	return response, nil
}

// elsewhere words the refusal of a placeholder.
func (x *exchange) elsewhere(name string) string {
	if slices.ContainsFunc(x.state.For(x.session.Name, x.session.Port, x.session.Plain), func(b *secret.Bound) bool { return b.Name == name }) {
		return "it sends the placeholder of the secret " + name + " to a path of " + x.session.Name + " that the secret is not for"
	}
	return "it sends the placeholder of the secret " + name + " to " + x.session.Name + ", which is not a host of that secret"
}

// cannotRead words a missing value. The sandbox learns no more.
func cannotRead(err error) string {
	if hint := fault.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// hold fetches the values that may be needed. Without them, the host's answer
// could not be searched.
func (x *exchange) hold(ctx context.Context) error {
	for _, b := range x.bound {
		held, err := b.Hold(ctx)
		if err != nil {
			x.release()
			return err
		}
		x.held = append(x.held, held)
	}
	return nil
}

func (x *exchange) release() {
	for _, held := range x.held {
		held.Release()
	}
	x.held = nil
}

// clean removes values from an error, which may quote the host.
func (x *exchange) clean(err error) error {
	text, changed := err.Error(), false
	for _, held := range x.held {
		cleaned, found := held.In().Text(text)
		text, changed = cleaned, changed || found
	}
	if !changed {
		return err
	}
	return errors.New(text)
}
