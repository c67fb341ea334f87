package metering

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/ledger"
	"github.com/litterbox-sandbox/litterbox/internal/meter"
)

// watch reads the answer while it passes.
func (x *exchange) watch(response *http.Response) {
	kind := response.Header.Get("Content-Type")
	a := &answer{x: x, body: response.Body, read: meter.NewAnswer(x.route.Wire, kind), status: response.StatusCode}
	if media, _, err := mime.ParseMediaType(kind); err == nil && media == "text/event-stream" {
		a.events = true
	}
	a.from = a.body
	switch strings.ToLower(response.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		// Compressed against the request; the client gets it unpacked.
		response.Header.Del("Content-Encoding")
		response.Header.Del("Content-Length")
		response.ContentLength, response.Uncompressed = -1, true
		a.from = &unzip{body: a.body}
	default:
		a.blind = true // it counts as what was reserved
	}
	response.Body = a
}

// answer is the body of an answer in the client's hands.
type answer struct {
	x      *exchange
	body   io.ReadCloser
	from   io.Reader // body, unpacked
	read   *meter.Answer
	status int
	events bool
	blind  bool

	mu   sync.Mutex // Close may come while Read waits
	over bool       // settled
	tail *bytes.Reader
}

// Read implements io.Reader. Bytes are passed on as they are read.
func (a *answer) Read(p []byte) (int, error) {
	if a.tail != nil {
		return a.tail.Read(p)
	}
	n, err := a.from.Read(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.blind {
		_, _ = a.read.Write(p[:n]) // it never fails
	}
	if err != nil {
		a.finish(errors.Is(err, io.EOF))
		return n, err
	}
	if why := a.beyond(); why != "" {
		a.finish(false)
		_ = a.body.Close() // so the provider stops, too
		a.x.o.Refused(why)
		a.tail = bytes.NewReader(meter.Cut(a.x.route.Wire, why))
		if n == 0 {
			return a.tail.Read(p)
		}
	}
	return n, nil
}

// beyond says why a stream must not go on: it has exceeded what was reserved,
// and the budget has no more.
func (a *answer) beyond() string {
	if !a.events || a.over || !a.x.reserved || !a.x.settings.Budgets.Bounds() {
		return ""
	}
	outcome := a.read.Outcome(false)
	so := ledger.Amount{Tokens: outcome.Usage.Tokens()}
	if cost := a.x.cost(outcome); cost != nil {
		so.Cost = *cost
	}
	most := ledger.Amount{Tokens: a.x.entry.MaxTokens}
	if a.x.entry.MaxCost != nil {
		most.Cost = *a.x.entry.MaxCost
	}
	if so.Tokens <= most.Tokens && so.Cost <= most.Cost {
		return ""
	}
	var exceeded *ledger.Exceeded
	if err := a.x.o.Book.Over(a.x.entry, so, a.x.settings.Budgets); errors.As(err, &exceeded) {
		return exceeded.Why
	}
	return ""
}

// finish settles the call, once.
func (a *answer) finish(whole bool) {
	if a.over {
		return
	}
	a.over = true
	a.x.settle(ledger.Cut, a.status, a.read.Outcome(whole && !a.blind))
}

// Close implements io.Closer.
func (a *answer) Close() error {
	err := a.body.Close() // which ends a Read that waits
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finish(false)
	return err
}

// unzip unpacks as it is read: the head of a gzip stream may come late.
type unzip struct {
	body io.Reader
	z    *gzip.Reader
}

func (u *unzip) Read(p []byte) (int, error) {
	if u.z == nil {
		var err error
		if u.z, err = gzip.NewReader(u.body); err != nil {
			return 0, err
		}
	}
	return u.z.Read(p)
}
