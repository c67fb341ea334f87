package metering

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/meter"
	"github.com/litterbox-sandbox/litterbox/internal/zstd"
)

// Bounds of a request that is read before it is sent.
const (
	inMemory = 256 << 10
	maxBody  = 64 << 20
)

// spooled is the body of a request that has come whole, or up to maxBody: in
// memory, or in a file without a name.
type spooled struct {
	head []byte
	file *os.File
	size int64
	more io.ReadCloser // what is beyond maxBody; nil when that is all

	rest io.Reader // what is not sent yet
}

// spool reads a body. The directory is the host's, not the sandbox's.
func spool(body io.ReadCloser, dir string) (*spooled, error) {
	s := &spooled{}
	if body == nil {
		body = http.NoBody
	}
	var head bytes.Buffer
	n, err := io.CopyN(&head, body, inMemory)
	s.head, s.size = head.Bytes(), n
	switch {
	case errors.Is(err, io.EOF):
		return s, body.Close()
	case err != nil:
		return nil, errors.Join(err, body.Close())
	}
	if s.file, err = os.CreateTemp(dir, ".call-*"); err == nil {
		err = os.Remove(s.file.Name())
	}
	if err == nil {
		n, err = io.CopyN(s.file, body, maxBody-inMemory)
		s.size += n
	}
	switch {
	case errors.Is(err, io.EOF):
		return s, body.Close()
	case err != nil:
		return nil, errors.Join(err, body.Close(), s.Close())
	}
	s.more = body
	return s, nil
}

// all reads what was spooled from its beginning.
func (s *spooled) all() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.head)
	}
	return io.MultiReader(bytes.NewReader(s.head), io.NewSectionReader(s.file, 0, s.size-int64(len(s.head))))
}

// Read implements io.Reader for the sender of the request.
func (s *spooled) Read(p []byte) (int, error) {
	if s.rest == nil {
		s.rest = s.all()
		if s.more != nil {
			s.rest = io.MultiReader(s.rest, s.more)
		}
	}
	return s.rest.Read(p)
}

// Close implements io.Closer.
func (s *spooled) Close() error {
	var err error
	if s.file != nil {
		err = s.file.Close()
		if errors.Is(err, os.ErrClosed) {
			err = nil
		}
	}
	if s.more != nil {
		err = errors.Join(err, s.more.Close())
	}
	return err
}

// read finds out what the request asks for.
func (x *exchange) read(r *http.Request, body *spooled) error {
	x.call = meter.Call{Model: x.route.Model, Bytes: body.size, Copies: 1, Outside: true}
	if body.more != nil {
		return &meter.Unclear{Why: "is too large"}
	}
	text := body.all()
	switch encoding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ",")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return &meter.Unclear{Why: "is not compressed as it says"}
		}
		text = &limited{unzipped, maxBody}
	case "zstd": // Codex with a subscription
		unpacked, err := zstd.NewReader(text, 8<<20)
		if err != nil {
			return &meter.Unclear{Why: "is not compressed as it says"}
		}
		defer unpacked.Close()
		text = &limited{unpacked, maxBody}
	default:
		return &meter.Unclear{Why: "is compressed with " + shorten(encoding) + ", which is not read"}
	}
	call, err := meter.ReadCall(x.route, text)
	if err == nil || call.Model != "" {
		x.call = call
	}
	var unclear *meter.Unclear
	if err != nil && !errors.As(err, &unclear) {
		err = &meter.Unclear{Why: "is not compressed as it says"}
	}
	return err
}

// limited fails beyond a number of bytes: a small body may unpack to a large one.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, &meter.Unclear{Why: "is too large"}
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
