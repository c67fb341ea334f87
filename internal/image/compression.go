package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/zstd"
)

// decompress tells by the first bytes how a stream is compressed. For an
// uncompressed file plain is nil and the file is at its beginning, so that it can
// be sought in. close releases the reader's resources.
func decompress(stream io.Reader) (plain io.Reader, close func() error, err error) {
	nothing := func() error { return nil }
	if f, ok := stream.(*os.File); ok {
		start := make([]byte, 4)
		n, err := f.ReadAt(start, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, fault.Wrap(fault.Unavailable, err, "cannot read it")
		}
		if !isGzip(start[:n]) && !zstd.Is(start[:n]) {
			return nil, nothing, nil
		}
	}
	buffered := bufio.NewReaderSize(stream, 64<<10)
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fault.Wrap(fault.Unavailable, err, "cannot read it")
	}
	switch {
	case isGzip(start):
		plain, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, fault.Wrap(fault.Invalid, err, "cannot decompress it")
		}
		return plain, plain.Close, nil
	case zstd.Is(start):
		return unpackZstd(buffered)
	}
	return buffered, nothing, nil
}

func isGzip(start []byte) bool { return bytes.HasPrefix(start, []byte{0x1f, 0x8b}) }

// zstdWindow is how far back a stream may refer, in bytes, which reading it holds
// in memory: the most that zstd's program takes without being asked
// (ZSTD_WINDOWLOG_LIMIT_DEFAULT in zstd.h).
const zstdWindow = 128 << 20

// unpackZstd reads a stream of zstd.
func unpackZstd(stream io.Reader) (io.Reader, func() error, error) {
	plain, err := zstd.NewReader(stream, zstdWindow)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, err, "cannot decompress it")
	}
	return plain, plain.Close, nil
}
