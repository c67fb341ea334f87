package metering

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/litterbox-sandbox/litterbox/internal/meter"
)

func pack(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	default:
		return text
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Whatever its size and compression, a request reads the same, is sent as it
// came, and leaves no file.
func TestRequestsAreReadBeforeTheyAreSent(t *testing.T) {
	large := `{"model":"m","max_tokens":7,"messages":["` + strings.Repeat("x", 3*inMemory) + `"]}`
	for name, c := range map[string]struct{ encoding, sent, why string }{
		"plain":      {"", `{"model":"m","max_tokens":7}`, ""},
		"large":      {"", large, ""},
		"gzip":       {"gzip", pack(t, "gzip", large), ""},
		"zstd":       {"zstd", pack(t, "zstd", large), ""},
		"a bomb":     {"gzip", pack(t, "gzip", `{"model":"m","x":"`+strings.Repeat(" ", maxBody)+`"}`), "too large"},
		"another":    {"zstd", pack(t, "zstd", `{"model":"m","x":"`+strings.Repeat(" ", maxBody)+`"}`), "too large"},
		"not gzip":   {"gzip", large, "not compressed as it says"},
		"not zstd":   {"zstd", large, "not compressed as it says"},
		"not either": {"br", large, "compressed with br"},
		"two":        {"gzip, zstd", large, "compressed with gzip, zstd"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			body, err := spool(io.NopCloser(strings.NewReader(c.sent)), dir)
			if err != nil {
				t.Fatal(err)
			}
			x := &exchange{route: meter.Route{Class: meter.Model, Wire: meter.Messages}}
			r := &http.Request{Header: http.Header{}}
			if c.encoding != "" {
				r.Header.Set("Content-Encoding", c.encoding)
			}
			err = x.read(r, body)
			var unclear *meter.Unclear
			switch {
			case c.why == "" && (err != nil || x.call.Model != "m" || x.call.Output != 7):
				t.Errorf("%+v, %v", x.call, err)
			case c.why != "" && (!errors.As(err, &unclear) || !strings.Contains(err.Error(), c.why)):
				t.Errorf("the error is %v, want %q", err, c.why)
			}
			if got, err := io.ReadAll(body); err != nil || string(got) != c.sent {
				t.Errorf("%d bytes are sent of %d: %v", len(got), len(c.sent), err)
			}
			if err := body.Close(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("files are left: %v %v", left, err)
			}
		})
	}
}

func TestPathsOnWhichServersAgree(t *testing.T) {
	for raw, want := range map[string]string{
		"/v1/messages":                   "/v1/messages",
		"/v1beta/models/m%3AcountTokens": "/v1beta/models/m:countTokens",
		"/v1/%6dessages":                 "/v1/messages",
		"/v1//messages":                  "", "/v1/messages/": "", "/v1/./messages": "", "/x/../v1/messages": "", "/v1%2fmessages": "",
		"/v1/messages%252f": "", "/v1/messages;x": "", "/v1\\messages": "", "/v1/mess%00ages": "", "/v1/nachr%C3%A4ge": "",
	} {
		u, err := url.Parse("https://host" + raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := plainPath(u); got != want {
			t.Errorf("%s is %q, want %q", raw, got, want)
		}
	}
}
