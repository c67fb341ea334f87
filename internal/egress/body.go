package egress

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// maxLine bounds a line of the chunked encoding.
const maxLine = 4 << 10

// errFraming ends a body whose chunks are malformed.
var errFraming = errors.New("its HTTP body is malformed")

// body passes the body of a request: length bytes, or chunks when it is -1.
// The deadline ends with the head: neither a body nor the pause before the next
// request is limited.
func (f *flow) body(in *intake, length int64) error {
	if err := f.up.rearm(); err != nil {
		return err
	}
	if length >= 0 {
		return f.pass(in, length)
	}
	for {
		size, err := f.chunkLine(in)
		if err != nil {
			return err
		}
		if size == 0 {
			return f.trailers(in)
		}
		if err := f.pass(in, size); err != nil {
			return err
		}
		if line, err := f.line(in); err != nil || line != "" {
			return errors.Join(errFraming, err)
		}
	}
}

// chunkLine reads and passes the line before a chunk. Extensions are refused:
// only tests of where parsers differ send them.
func (f *flow) chunkLine(in *intake) (int64, error) {
	line, err := f.line(in)
	if err != nil {
		return 0, err
	}
	if line == "" || len(line) > 15 || !hexadecimal(line) {
		return 0, errFraming
	}
	size, err := strconv.ParseInt(line, 16, 64)
	if err != nil {
		return 0, errFraming
	}
	return size, nil
}

// trailers passes what may follow the last chunk.
func (f *flow) trailers(in *intake) error {
	for total := 0; total < maxHead; {
		line, err := f.line(in)
		if err != nil || line == "" {
			return err
		}
		if name, _, ok := bytes.Cut([]byte(line), []byte(":")); !ok || !token(string(name)) {
			return errFraming
		}
		total += len(line)
	}
	return errFraming
}

// line passes one line and returns it without its end.
func (f *flow) line(in *intake) (string, error) {
	n, err := in.until("\n", maxLine)
	if err != nil {
		return "", err
	}
	text := string(in.buf[:n])
	if n < 2 || text[n-2] != '\r' || bytes.ContainsAny([]byte(text[:n-2]), "\r\x00") {
		return "", errFraming
	}
	wrote, err := f.up.dst.Write(in.buf[:n])
	f.up.moved.Add(int64(wrote))
	in.advance(n)
	return text[:n-2], err
}

// pass moves exactly length bytes of a body.
func (f *flow) pass(in *intake, length int64) error {
	if have := min(int64(len(in.buf)), length); have > 0 {
		wrote, err := f.up.dst.Write(in.buf[:have])
		f.up.moved.Add(int64(wrote))
		in.advance(int(have))
		if err != nil {
			return err
		}
		length -= have
	}
	if length == 0 {
		return nil
	}
	done, err := f.up.run(length)
	if err == nil && done < length {
		err = io.ErrUnexpectedEOF
	}
	return err
}
