// Package zstd unpacks streams of zstd (RFC 8878) by what the program has for it.
// The library prepares tables and asks the processor what it can do whenever a
// program that links it starts, a tenth of a short start: the program that users
// type has the full one unpack.
package zstd

import (
	"bytes"
	"errors"
	"io"
)

// Unpacker unpacks a stream that may refer back by window bytes, which it holds in
// memory, at most. Close ends it early, too.
type Unpacker func(stream io.Reader, window uint64) (io.ReadCloser, error)

var unpacker Unpacker = func(io.Reader, uint64) (io.ReadCloser, error) {
	return nil, errors.New("this program does not unpack zstd")
}

// Use says how this program unpacks. Its main function calls it first.
func Use(u Unpacker) { unpacker = u }

// NewReader is the program's Unpacker.
func NewReader(stream io.Reader, window uint64) (io.ReadCloser, error) {
	return unpacker(stream, window)
}

// Is reports whether a stream that begins so is zstd: the magic number of RFC 8878,
// section 3.1.1.
func Is(start []byte) bool { return bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}) }
