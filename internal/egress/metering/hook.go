package metering

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
	"github.com/litterbox-sandbox/litterbox/internal/ledger"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
)

// Settings are the settings at one moment.
type Settings struct {
	Meter   bool // look into calls without a budget, too
	Budgets ledger.Budgets
	Hosts   []string // beside those that are known
	Prices  meter.Prices
}

// Looks reports whether the settings alone cause calls to be looked into.
func (s Settings) Looks() bool { return s.Meter || s.Budgets.Bounds() }

// Options are what a hook works with.
type Options struct {
	Settings func() Settings // asked for with each connection and each call
	Book     *ledger.Book
	Sandbox  ledger.Entry // who calls: the identifying fields of an entry
	Scratch  string       // directory for requests that are too large for memory
	// Seen is called for every metered call, before it is sent.
	Seen func()
	// Refused is told why a budget has refused or cut off a call.
	Refused func(why string)
	// Failed is told of the ledger's failures to write.
	Failed func(error)
}

// Hook implements intercept.Hook. It is safe for concurrent use.
type Hook struct{ o Options }

var _ intercept.Hook = (*Hook)(nil)

// New makes a hook.
func New(o Options) *Hook { return &Hook{o} }

// Wants implements intercept.Hook.
func (h *Hook) Wants(host string, port uint16, _ string) bool {
	s := h.o.Settings()
	if !s.Looks() {
		return false
	}
	if host == "" { // the first bytes may name one
		return port == 443 || port == 80
	}
	return s.metered(host)
}

// Insists implements intercept.Insister: with a budget, nothing goes unseen to a
// host of models.
func (h *Hook) Insists(host string, _ uint16) bool {
	s := h.o.Settings()
	return s.Budgets.Bounds() && s.metered(host)
}

func (s Settings) metered(host string) bool {
	return slices.Contains(meter.Known(), host) || slices.Contains(s.Hosts, host)
}

// Wrap implements intercept.Hook.
func (h *Hook) Wrap(s *egress.Session, next http.RoundTripper) http.RoundTripper {
	if !h.o.Settings().metered(s.Name) {
		return next
	}
	return intercept.RoundTrip(func(r *http.Request) (*http.Response, error) {
		return (&exchange{Hook: h, session: s, next: next, settings: h.o.Settings(), began: time.Now()}).send(r)
	})
}

// exchange is one request with its answer.
type exchange struct {
	*Hook
	session  *egress.Session
	next     http.RoundTripper
	settings Settings
	began    time.Time

	route    meter.Route
	call     meter.Call
	entry    ledger.Entry // as it was reserved
	reserved bool
}

func (x *exchange) send(r *http.Request) (*http.Response, error) {
	bound := x.settings.Budgets.Bounds()
	x.route = meter.RouteOf(x.session.Name, r.Method, plainPath(r.URL))
	upgrade := r.Header.Get("Upgrade") != ""
	if x.route.Class == meter.Model && r.Method != "POST" && !upgrade {
		x.route = meter.Route{Class: meter.Free} // a list
	}
	switch {
	case upgrade && (bound || x.settings.Looks() && x.route.Class == meter.Model):
		// Clients that try a websocket first go on without one (RFC 9110,
		// section 15.5.22).
		return x.refuse(r, http.StatusUpgradeRequired, "calls over websockets cannot be metered; use plain requests")
	case upgrade:
		return x.next.RoundTrip(r)
	case bound && overridden(r):
		return x.refuse(r, 0, "a request whose header overrides its method cannot be metered, and the sandbox has a budget")
	case x.route.Class == meter.Model:
		return x.meter(r)
	case bound && x.route.Class != meter.Free:
		return x.refuse(r, 0, "what this request costs cannot be metered, and the sandbox has a budget: "+r.Method+" "+shorten(r.URL.Path))
	}
	return x.next.RoundTrip(r)
}

// overridden reports whether a server may take the request for one with
// another method, as Google's do.
func overridden(r *http.Request) bool {
	for _, name := range []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// plainPath returns the path of a URL if all servers agree on its meaning;
// empty if they may not.
func plainPath(u *url.URL) string {
	escaped, path := strings.ToLower(u.EscapedPath()), u.Path
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-._~:/@!$&'()*+,="
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%25") || strings.Trim(strings.ToLower(path), plain) != "" ||
		strings.ContainsFunc(strings.ToLower(path), func(c rune) bool { return !strings.ContainsRune(plain, c) }) {
		return ""
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return ""
		}
	}
	return path
}

// meter sends a call of a model.
func (x *exchange) meter(r *http.Request) (*http.Response, error) {
	bound := x.settings.Budgets.Bounds()
	body, err := spool(r.Body, x.o.Scratch)
	if err != nil {
		return nil, err
	}
	r.Body = body
	if err := x.read(r, body); err != nil && bound {
		return x.refuse(r, 0, "what this call may cost cannot be told, and the sandbox has a budget: "+err.Error())
	}
	price, priced := x.settings.Prices.Of(x.call.Model)
	if priced = priced && meter.Priced(x.call.Tier); !priced && (x.settings.Budgets.Sandbox.USD > 0 || x.settings.Budgets.Day.USD > 0) {
		what := "model " + strconv.Quote(shorten(x.call.Model))
		if x.call.Tier != "" {
			what += " in tier " + strconv.Quote(shorten(x.call.Tier))
		}
		return x.refuse(r, 0, "there is no price for "+what+", and the budget is in USD; on the host, cost.prices in your own configuration sets one, and a budget in tokens needs none")
	}
	most, cost := price.Most(x.call)
	x.entry = x.o.Sandbox
	x.entry.Host, x.entry.Wire, x.entry.Model, x.entry.MaxTokens = x.session.Name, x.route.Wire, x.call.Model, most.Tokens()
	if priced {
		x.entry.MaxCost = &cost
	}
	x.entry, err = x.o.Book.Reserve(r.Context(), x.entry, x.settings.Budgets)
	var exceeded *ledger.Exceeded
	switch {
	case errors.As(err, &exceeded):
		return x.refuse(r, 0, exceeded.Why)
	case err != nil && bound:
		x.o.Failed(err)
		return x.refuse(r, http.StatusServiceUnavailable, "the ledger of costs cannot be written, and the sandbox has a budget")
	case err != nil:
		x.o.Failed(err)
	default:
		x.reserved = true
	}
	x.o.Seen()
	// The answer must be readable; clients take it uncompressed.
	r.Header.Set("Accept-Encoding", "identity")
	var sent atomic.Bool
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}))
	response, err := x.next.RoundTrip(r)
	if err != nil {
		end := ledger.Cut // perhaps it is being answered
		if !sent.Load() {
			end = ledger.Unsent
		}
		x.settle(end, 0, meter.Outcome{})
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		x.settle(ledger.Unsent, response.StatusCode, meter.Outcome{}) // no provider charges for errors
		return response, nil
	}
	x.watch(response)
	return response, nil
}

// settlePatience bounds how long settling a call waits for other writers.
const settlePatience = 10 * time.Second

// settle records the outcome of the call.
func (x *exchange) settle(end string, status int, o meter.Outcome) {
	if !x.reserved {
		return
	}
	if end != ledger.Unsent && o.Exact {
		end = ledger.Exact
	}
	e := ledger.Settle(x.entry, end, status, o.Model, o.Usage, x.cost(o), time.Since(x.began))
	ctx, stop := context.WithTimeout(context.Background(), settlePatience) // the client may be gone
	defer stop()
	if err := x.o.Book.Append(ctx, e); err != nil {
		x.o.Failed(err) // it counts as what was reserved
	}
}

// cost returns the cost of an outcome; nil where no price is known.
func (x *exchange) cost(o meter.Outcome) *meter.Money {
	price, priced := x.settings.Prices.Of(o.Model)
	if !priced {
		price, priced = x.settings.Prices.Of(x.call.Model)
	}
	if !priced || !meter.Priced(o.Tier) || !meter.Priced(x.call.Tier) {
		if o.Claimed > 0 {
			return &o.Claimed
		}
		return nil
	}
	cost := price.Cost(o.Usage)
	return &cost
}

// refuse answers in the provider's format. Status 0 is that of the format.
func (x *exchange) refuse(r *http.Request, status int, why string) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close() // its error is of no interest
	}
	wire := x.route.Wire
	if wire == "" {
		wire = meter.WireOf(x.session.Name)
	}
	why = "litterbox: " + strings.TrimPrefix(why, "litterbox: ")
	x.session.Refuse(egress.Request{Method: r.Method, Path: r.URL.RequestURI()}, strings.TrimPrefix(why, "litterbox: "))
	x.o.Refused(why)
	refusal := meter.Refuse(wire, why)
	if status == 0 {
		status = refusal.Status
	}
	header := http.Header{"Content-Type": {refusal.ContentType}, "Cache-Control": {"no-store"}, "X-Should-Retry": {"false"}}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: r,
		Body: io.NopCloser(bytes.NewReader(refusal.Body)), ContentLength: int64(len(refusal.Body)),
	}, nil
}

func shorten(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
