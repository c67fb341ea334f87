package renew

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
	"github.com/litterbox-sandbox/litterbox/internal/login"
)

const (
	// margin is how much longer an access token must live to need no renewal:
	// clients renew five minutes before the end.
	margin = 5*time.Minute + 5*time.Second
	// patience bounds a renewal, including the wait for other renewals.
	patience = 60 * time.Second
	// meanwhile is how long a refused renewal waits for the tokens of a faster one:
	// a client on a busy machine may take a while to write them down.
	meanwhile  = 10 * time.Second
	mostAnswer = 1 << 20
)

// asked is what a client asks for.
type asked struct {
	form   bool
	fields map[string]string
}

func parseAsked(contentType string, body []byte) (asked, bool) {
	kind, _, _ := mime.ParseMediaType(contentType)
	a := asked{fields: map[string]string{}}
	if kind == "application/x-www-form-urlencoded" {
		values, err := url.ParseQuery(string(body))
		for name := range values {
			a.fields[name] = values.Get(name)
		}
		a.form = true
		return a, err == nil
	}
	document, err := login.Parse(body)
	for name, value := range document {
		if text, ok := value.(string); ok {
			a.fields[name] = text
		}
	}
	return a, err == nil
}

// passed are the fields of a request that go to the host as the client sent them.
var passed = [...]string{"grant_type", "client_id", "client_secret", "scope"}

// body returns the request to the host, with the real token. Scopes that a
// client inside leaves out would be lost for the host's client too, so those
// of the login count then.
func (k *Kept) body(a asked, refresh string, scopes []string) []byte {
	fields := map[string]string{"refresh_token": refresh}
	for _, name := range passed {
		if value, ok := a.fields[name]; ok {
			fields[name] = value
		}
	}
	if text, ok := fields["scope"]; ok && len(scopes) > 0 {
		given := strings.Fields(text)
		for _, scope := range scopes {
			if !contains(given, scope) {
				fields["scope"] = strings.Join(scopes, " ")
			}
		}
	}
	if a.form {
		values := url.Values{}
		for name, value := range fields {
			values.Set(name, value)
		}
		return []byte(values.Encode())
	}
	text, _ := json.Marshal(fields) // of strings
	return text
}

// renew answers a request for the next access token.
func (k *Kept) renew(s *egress.Session, r *http.Request, a asked, next http.RoundTripper) (*http.Response, error) {
	if client := a.fields["client_id"]; client != k.Renewal.Client {
		return nil, intercept.Deny(s, r, "it renews the login of "+k.Title+" in the name of another client")
	}
	// The host's answer must be kept, even if the client is gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	defer k.begin()()
	release, err := login.Lock(ctx, k.Own, k.Locks)
	if err != nil {
		return nil, intercept.Deny(s, r, "the login of "+k.Title+" cannot be renewed: "+err.Error())
	}
	response, err := k.locked(ctx, s, r, a, next)
	if late := release(); late != nil && err == nil {
		s.Failed(late) // the renewal holds; others wait until the lock is stale
	}
	return response, err
}

func (k *Kept) locked(ctx context.Context, s *egress.Session, r *http.Request, a asked, next http.RoundTripper) (*http.Response, error) {
	deny := func(err error) error {
		return intercept.Deny(s, r, "the login of "+k.Title+" cannot be renewed: "+err.Error())
	}
	if _, err := k.Recover(k.Path); err != nil {
		return nil, deny(err)
	}
	document, values, err := k.read()
	if err != nil {
		return nil, deny(err)
	}
	if time.Until(k.Ends(document)) > margin && !k.wasRefused(k.of(values, login.Access)) {
		return k.fromFile(r, document, values)
	}
	sent := k.of(values, login.Refresh)
	pending, err := login.Begin(k.Path, sent)
	if err != nil {
		return nil, deny(err) // the answer's tokens would be lost
	}
	keep := false
	defer func() {
		if !keep {
			if err := pending.End(); err != nil {
				s.Failed(err) // the next renewal removes it
			}
		}
	}()
	body := k.body(a, sent, k.Scopes(document))
	out := r.Clone(ctx)
	out.Header.Set("Accept-Encoding", "identity")
	out.Header.Del("Content-Length")
	out.Header.Del("Content-Encoding")
	out.Header.Del("Expect")
	out.Trailer = nil
	out.TransferEncoding = nil
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response, err := next.RoundTrip(out)
	if err != nil {
		return nil, clean(err, values)
	}
	// On disk first: a kill from here on loses nothing.
	content, err := io.ReadAll(io.TeeReader(io.LimitReader(response.Body, mostAnswer), pending))
	err = errors.Join(err, response.Body.Close())
	defer clear(content)
	if err != nil {
		return nil, clean(err, values)
	}
	answer, parsed := login.Parse(content)
	if response.StatusCode/100 != 2 || parsed != nil {
		if document, values, ok := k.others(ctx, sent); ok {
			return k.fromFile(r, document, values)
		}
		return refusal(r, response.StatusCode, answer, values), nil
	}
	document, values, err = k.read()
	if err != nil || k.of(values, login.Refresh) != sent {
		if err != nil {
			return nil, deny(err) // the host's client has logged out
		}
		return k.fromFile(r, document, values) // another client has renewed it without a lock
	}
	if !k.Renew(document, answer, time.Now()) {
		return refusal(r, http.StatusBadGateway, nil, values), nil
	}
	if err := errors.Join(pending.Room(), login.WriteFile(k.Path, document)); err != nil {
		keep = true
		return nil, deny(err)
	}
	if values, err = k.Values(document); err != nil {
		return nil, deny(err)
	}
	inside := map[string]any{}
	for _, name := range k.Renewal.Keep {
		if value, ok := answer[name]; ok && !holds(value, values) {
			inside[name] = value
		}
	}
	return k.answer(r, inside, values)
}

func (k *Kept) read() (document map[string]any, values []string, err error) {
	if document, err = login.ReadFile(k.Path); err == nil {
		values, err = k.Values(document)
	}
	return document, values, err
}

// others waits a moment for the tokens of a client that has renewed the login
// at the same time, without a lock.
func (k *Kept) others(ctx context.Context, sent string) (document map[string]any, values []string, ok bool) {
	end := time.Now().Add(meanwhile)
	for {
		document, values, err := k.read()
		if err == nil && k.of(values, login.Refresh) != sent {
			return document, values, true
		}
		const pause = 50 * time.Millisecond
		select {
		case <-ctx.Done():
			return nil, nil, false
		case <-time.After(pause):
		}
		if time.Now().After(end) {
			return nil, nil, false
		}
	}
}

// fromFile answers from the host's file.
func (k *Kept) fromFile(r *http.Request, document map[string]any, values []string) (*http.Response, error) {
	inside := map[string]any{"token_type": "Bearer"}
	if end := k.Ends(document); !end.IsZero() {
		inside["expires_in"] = max(1, int64(time.Until(end)/time.Second))
	}
	if scopes := k.Scopes(document); len(scopes) > 0 {
		inside["scope"] = strings.Join(scopes, " ")
	}
	return k.answer(r, inside, values)
}

// answer returns placeholders for tokens, with the fields of inside.
func (k *Kept) answer(r *http.Request, inside map[string]any, values []string) (*http.Response, error) {
	placeholders, err := k.Stand(values)
	if err != nil {
		return nil, clean(err, values)
	}
	for n, token := range k.Tokens {
		if placeholders[n] != "" {
			inside[token.Answer] = placeholders[n]
		}
	}
	return respond(r, http.StatusOK, inside), nil
}

// refusal passes on that the host has not renewed the login, in the host's words.
func refusal(r *http.Request, code int, answer map[string]any, values []string) *http.Response {
	inside := map[string]any{"error": "temporarily_unavailable"}
	if code/100 == 2 {
		code = http.StatusBadGateway
	}
	for _, name := range []string{"error", "error_description", "type", "message"} {
		value, ok := answer[name]
		if object, nested := value.(map[string]any); nested {
			words := map[string]any{}
			for _, name := range []string{"type", "message", "code"} {
				if text, ok := object[name].(string); ok {
					words[name] = text
				}
			}
			value = words
		} else if _, text := value.(string); !text {
			continue
		}
		if ok && !holds(value, values) {
			inside[name] = value
		}
	}
	return respond(r, code, inside)
}

// holds reports whether value, from the host, contains a token.
func holds(value any, values []string) bool {
	text, err := json.Marshal(value)
	if err != nil {
		return true
	}
	for _, one := range values {
		if one != "" && strings.Contains(string(text), one) {
			return true
		}
	}
	return false
}

// clean keeps tokens out of an error.
func clean(err error, values []string) error {
	if holds(err.Error(), values) {
		return errors.New("the login cannot be renewed")
	}
	return err
}

func respond(r *http.Request, code int, document map[string]any) *http.Response {
	content, _ := json.Marshal(document) // of decoded values and strings
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}},
		Body:   io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}
}
