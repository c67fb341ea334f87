// Package renew is the hook that renews logins of agents' clients. A client
// inside asks for the next access token with a placeholder of its refresh
// token; the hook puts the real one in, takes the real answer, writes the new
// tokens where the host's client keeps them, and answers with placeholders.
//
// The first renewal counts. Keepers take turns, and take the lock of the host's
// client where it has one. A login that was renewed meanwhile is not renewed again,
// and newer tokens are never overwritten: the answer then comes from the file.
//
// It comes after the hook that puts secrets in: the host's answers hold tokens
// that no other hook may see. Start reading at [Hook.Wrap].
package renew

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
	"github.com/litterbox-sandbox/litterbox/internal/login"
)

// Kept is a login of one sandbox.
type Kept struct {
	login.Login
	Path  string   // of the host's file
	Own   string   // the lock that keepers share
	Locks []string // those of the host's client
	// Stand returns the placeholders that stand for tokens inside, in the
	// order of Login.Tokens. They are in force when it returns.
	Stand func(values []string) (placeholders []string, err error)
	// IsRefresh reports whether a text is, or was, a placeholder of the refresh
	// token.
	IsRefresh func(text string) bool

	mu       sync.Mutex
	rejected [sha256.Size]byte // of the access token that its host refused last

	working sync.RWMutex // held for reading by renewals under way
}

// Hook implements intercept.Hook.
type Hook struct{ all func() []*Kept }

var _ intercept.Hook = (*Hook)(nil)

// New makes a hook for logins, whose number may grow while it works.
func New(all func() []*Kept) *Hook { return &Hook{all} }

// Wants implements intercept.Hook. The hosts of logins are looked at because
// their tokens are put in.
func (h *Hook) Wants(string, uint16, string) bool { return false }

// Wrap implements intercept.Hook.
func (h *Hook) Wrap(s *egress.Session, next http.RoundTripper) http.RoundTripper {
	return intercept.RoundTrip(func(r *http.Request) (*http.Response, error) {
		if one, asked, err := h.renewal(s, r); err != nil {
			return nil, err
		} else if one != nil {
			return one.renew(s, r, asked, next)
		}
		sent := r.Header.Clone()
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusUnauthorized {
			for _, one := range h.all() {
				one.refused(sent)
			}
		}
		return response, err
	})
}

// refused remembers an access token that its host does not accept although it
// has not expired.
func (k *Kept) refused(sent http.Header) {
	token, err := k.access()
	if err != nil || token == "" {
		return
	}
	for _, values := range sent {
		for _, value := range values {
			if strings.Contains(value, token) {
				k.mu.Lock()
				k.rejected = sha256.Sum256([]byte(token))
				k.mu.Unlock()
			}
		}
	}
}

// begin counts a renewal until done is called.
func (k *Kept) begin() (done func()) {
	k.working.RLock()
	return k.working.RUnlock
}

// settle returns when no renewal is under way.
func (k *Kept) settle() {
	k.working.Lock()
	defer k.working.Unlock()
}

// Wait returns when no renewal is under way, or when ctx ends; it is called
// once, at the end. A process that ends before that loses the host's answer.
func (h *Hook) Wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, one := range h.all() {
			one.settle()
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

func (k *Kept) wasRefused(access string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rejected == sha256.Sum256([]byte(access))
}

// access returns the current access token.
func (k *Kept) access() (string, error) {
	document, err := login.ReadFile(k.Path)
	if err != nil {
		return "", err
	}
	values, err := k.Values(document)
	if err != nil {
		return "", err
	}
	return k.of(values, login.Access), nil
}

// of returns the value for a role.
func (k *Kept) of(values []string, role login.Role) string {
	for n, token := range k.Tokens {
		if token.Role == role {
			return values[n]
		}
	}
	return ""
}

// mostAsked bounds how much of a request for the next token is read.
const mostAsked = 64 << 10

// renewal reports whether a request renews a login of the sandbox, and what it
// asks for. Any other request goes on unchanged.
func (h *Hook) renewal(s *egress.Session, r *http.Request) (*Kept, asked, error) {
	const https = 443
	if s.Plain || s.Port != https || r.Method != http.MethodPost || r.Body == nil {
		return nil, asked{}, nil
	}
	for _, one := range h.all() {
		if one.Renewal == nil || !contains(one.Renewal.Hosts, s.Name) || r.URL.Path != one.Renewal.Path {
			continue
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, mostAsked))
		if err != nil {
			return nil, asked{}, err
		}
		if len(body) == mostAsked {
			return nil, asked{}, intercept.Deny(s, r, "it renews a login with more than 64 KiB")
		}
		rest := r.Body
		r.Body = struct {
			io.Reader
			io.Closer
		}{bytes.NewReader(body), rest}
		wants, ok := parseAsked(r.Header.Get("Content-Type"), body)
		if !ok || wants.fields["grant_type"] != "refresh_token" {
			return nil, asked{}, nil
		}
		for _, candidate := range h.all() { // some share an endpoint
			if candidate.Renewal != nil && contains(candidate.Renewal.Hosts, s.Name) && candidate.IsRefresh(wants.fields["refresh_token"]) {
				_ = rest.Close() // it was read to its end
				return candidate, wants, nil
			}
		}
		return nil, asked{}, nil
	}
	return nil, asked{}, nil
}

func contains(all []string, one string) bool {
	for _, each := range all {
		if each == one {
			return true
		}
	}
	return false
}
