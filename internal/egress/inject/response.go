package inject

import (
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// watchInformational replaces values in the answers before the answer (103,
// 100), which are not part of the response.
func (x *exchange) watchInformational(r *http.Request) *http.Request {
	held := x.held
	trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
		for _, one := range held {
			replaceNames(http.Header(header), one.In())
		}
		return nil
	}}
	return r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
}

// incoming replaces values with placeholders.
func (x *exchange) incoming(r *http.Request, response *http.Response) error {
	if len(x.held) == 0 {
		if response.StatusCode == http.StatusSwitchingProtocols {
			x.watchSocket(response)
		}
		return nil
	}
	for _, held := range x.held {
		replaceNames(response.Header, held.In())
		replaceNames(response.Trailer, held.In())
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		return x.switched(response)
	}
	if response.StatusCode == http.StatusPartialContent || response.Header.Get("Content-Range") != "" {
		return x.unreadable("a part of a content, which was not asked for")
	}
	if r.Method == http.MethodHead || response.Body == nil || response.Body == http.NoBody {
		return nil
	}
	if err := x.decode(response); err != nil {
		return err
	}
	for _, held := range x.held {
		table := held.In()
		if !table.SameLength() {
			response.ContentLength = -1
			response.Header.Del("Content-Length")
		}
		filtered := newFilter(response.Body, table, held.Again())
		filtered.atEnd = func() { replaceNames(response.Trailer, table) }
		response.Body = filtered
	}
	return nil
}

// replaceNames replaces in names and values.
func replaceNames(header http.Header, table *replace.Table) {
	replaceHeader(header, table)
	for name, values := range header {
		if replaced, changed := table.Text(name); changed {
			delete(header, name)
			header[replaced] = values
		}
	}
}

// decode decompresses an answer that was asked not to be compressed.
func (x *exchange) decode(response *http.Response) error {
	var decoded io.Reader
	for _, encoding := range strings.Split(strings.Join(response.Header.Values("Content-Encoding"), ","), ",") {
		switch encoding = strings.ToLower(strings.TrimSpace(encoding)); {
		case encoding == "" || encoding == "identity":
			continue
		case decoded != nil:
			return x.unreadable("content that is encoded more than once")
		case encoding == "gzip" || encoding == "x-gzip":
			decoded = &lazyGzip{src: response.Body}
		case encoding == "deflate":
			return x.unreadable("content in the encoding deflate, which means two things")
		default:
			return x.unreadable(fmt.Sprintf("content in the encoding %.20q", encoding))
		}
	}
	if decoded == nil {
		return nil
	}
	response.Header.Del("Content-Encoding")
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	response.Uncompressed = true
	response.Body = readCloser{decoded, response.Body}
	return nil
}

// unreadable refuses an answer that cannot be searched.
func (x *exchange) unreadable(what string) error {
	return x.refusal.refuse("the host answers with " + what + ", and a secret may be in it")
}

// readCloser reads from one and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

// lazyGzip reads its header at the first read: the answer is passed on before.
type lazyGzip struct {
	src io.Reader
	gz  *gzip.Reader
	err error
}

func (g *lazyGzip) Read(p []byte) (int, error) {
	if g.gz == nil && g.err == nil {
		if g.gz, g.err = gzip.NewReader(&pieces{g.src}); g.err == io.EOF {
			return 0, io.EOF // an empty body is not content at all
		}
	}
	if g.err != nil {
		return 0, g.err
	}
	return g.gz.Read(p)
}

// pieces keeps package flate from waiting for more than it needs, as it would
// through a buffer of its own.
type pieces struct{ src io.Reader }

var _ flate.Reader = (*pieces)(nil)

func (p *pieces) Read(b []byte) (int, error) { return p.src.Read(b) }

func (p *pieces) ReadByte() (byte, error) {
	var one [1]byte
	for {
		n, err := p.src.Read(one[:])
		if n == 1 {
			return one[0], nil
		}
		if err != nil {
			return 0, err
		}
	}
}
