package intercept

import (
	"errors"
	"io"
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// soundTrailers drops the trailers of answers that cannot be written. HTTP/1
// lets a name have characters that HTTP/2 does not. The server of net/http
// leaves such fields out by itself, and if none is left it writes no end of
// the stream: a client would wait for ever.
func soundTrailers(next http.RoundTripper) http.RoundTripper {
	return RoundTrip(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode != http.StatusSwitchingProtocols && response.Body != nil && response.Body != http.NoBody {
			response.Body = &trailed{response.Body, response}
		}
		return response, err
	})
}

// trailed is the body of an answer. Its trailers come with its end.
type trailed struct {
	io.ReadCloser
	response *http.Response
}

// Read implements io.Reader.
func (t *trailed) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		for name, values := range t.response.Trailer {
			var sound []string
			for _, value := range values {
				if httpguts.ValidHeaderFieldValue(value) {
					sound = append(sound, value)
				}
			}
			if t.response.Trailer[name] = sound; len(sound) == 0 || !httpguts.ValidHeaderFieldName(name) {
				delete(t.response.Trailer, name)
			}
		}
	}
	return n, err
}
