// Package linked unpacks zstd by the library, for programs that link it.
package linked

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// NewReader is a zstd.Unpacker.
func NewReader(stream io.Reader, window uint64) (io.ReadCloser, error) {
	r, err := zstd.NewReader(stream, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	return r.IOReadCloser(), nil
}
