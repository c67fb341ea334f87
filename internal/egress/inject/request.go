package inject

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// wholeBody is the largest body that is read whole when its length changes and
// is declared beforehand.
const wholeBody = 1 << 20

// foreign names a secret whose placeholder is in the head of a request and may
// not be sent to its host; empty for none.
func (x *exchange) foreign(r *http.Request) string {
	texts := []string{r.Method, r.URL.RequestURI()}
	if plain, err := url.PathUnescape(texts[1]); err == nil {
		texts = append(texts, plain)
	}
	for name, values := range r.Header {
		texts = append(append(texts, name), values...)
	}
	for _, text := range texts {
		if name := x.foreignText(text); name != "" {
			return name
		}
	}
	return ""
}

func (x *exchange) foreignText(text string) string {
	for id := range x.state.Marks().IDs([]byte(text)) {
		if name := x.foreignID(id); name != "" {
			return name
		}
	}
	return ""
}

// foreignID names a secret that does not belong to the host.
func (x *exchange) foreignID(id int) string {
	found := x.state.Bound[id]
	for _, b := range x.bound {
		if b == found {
			return ""
		}
	}
	return found.Name
}

// outgoing puts the values in, and has the body searched as it streams.
func (x *exchange) outgoing(r *http.Request) error {
	for _, held := range x.held {
		if held.Replaces(secret.Header) {
			replaceHeader(r.Header, held.Out(nil))
		}
		if held.Replaces(secret.Query) {
			r.URL.RawQuery, _ = held.Out(queryEscaped).Text(r.URL.RawQuery)
		}
		if held.Replaces(secret.Basic) {
			replaceBasic(r.Header, held.Out(nil))
		}
	}
	r.Header.Del("Sec-Websocket-Extensions") // compressed messages cannot be searched
	if len(x.held) > 0 {
		// The answer is searched, so it must come uncompressed and whole.
		r.Header.Set("Accept-Encoding", "identity")
		r.Header.Del("Range")
		r.Header.Del("If-Range")
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if x.hasForeign() {
		r.Body = &watched{body: r.Body, x: x, finder: x.state.Marks().Finder(), trailer: r.Trailer}
	}
	return x.outgoingBody(r)
}

// hasForeign reports whether there are placeholders that may not be sent to
// the host.
func (x *exchange) hasForeign() bool { return len(x.bound) < len(x.state.Bound) }

// outgoingBody puts values into the body.
func (x *exchange) outgoingBody(r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil // a placeholder in there is not seen, and stays one
	}
	even := true
	for _, held := range x.held {
		body := held.Replaces(secret.Body)
		if !body && !held.Replaces(secret.Header) {
			continue
		}
		table := &replace.Table{}
		if body {
			table = held.Out(writtenIn(r.Header.Get("Content-Type")))
		}
		even = even && table.SameLength()
		filtered := newFilter(r.Body, table, held.Again())
		if held.Replaces(secret.Header) {
			out := held.Out(nil)
			filtered.atEnd = func() { replaceHeader(r.Trailer, out) }
		}
		r.Body = filtered
	}
	switch {
	case even || r.ContentLength < 0:
		return nil
	case r.ContentLength > wholeBody:
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}
	whole, err := io.ReadAll(r.Body)
	err = errors.Join(err, r.Body.Close())
	if refused := x.refusal.error(); refused != nil {
		return refused
	}
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(whole)), int64(len(whole))
	if r.Header.Get("Content-Length") != "" {
		r.Header.Del("Content-Length") // the transport writes its own
	}
	return nil
}

// replaceHeader replaces in all values.
func replaceHeader(header http.Header, table *replace.Table) {
	for _, values := range header {
		for n, value := range values {
			values[n], _ = table.Text(value)
		}
	}
}

// replaceBasic replaces in the user name and the password of the Basic scheme.
func replaceBasic(header http.Header, table *replace.Table) {
	for n, value := range header["Authorization"] {
		scheme, encoded, ok := strings.Cut(value, " ")
		if !ok || !strings.EqualFold(scheme, "Basic") {
			continue
		}
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil {
			continue
		}
		if replaced, changed := table.Text(string(decoded)); changed {
			header["Authorization"][n] = scheme + " " + base64.StdEncoding.EncodeToString([]byte(replaced))
		}
	}
}

func queryEscaped(value []byte) []byte { return []byte(url.QueryEscape(string(value))) }

// writtenIn is how a value is written into content of a type.
func writtenIn(contentType string) func([]byte) []byte {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return nil
	case kind == "application/x-www-form-urlencoded":
		return queryEscaped
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return func(value []byte) []byte {
			text, err := json.Marshal(string(value))
			if err != nil || len(text) < 2 {
				return value
			}
			return text[1 : len(text)-1]
		}
	}
	return nil
}
