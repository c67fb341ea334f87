// Package seal tells a good record from one that a crash or a disk has damaged: a
// JSON object ends with a member "checksum" over everything before it. It stays JSON,
// so an older program, or a human with cat or jq, reads it as before; and a record
// without a checksum, from an older program or edited by hand, counts as it is.
//
// It protects against no attacker: one who can write a record can seal it.
//
// Start reading at [Encode] and [Decode].
package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrDamaged means that a record is not what was written.
var ErrDamaged = errors.New("the record is damaged")

const (
	recordMark = ",\n  \"checksum\": \""
	recordEnd  = "\"\n}"
	lineMark   = `,"checksum":"`
	lineEnd    = `"}`
	digits     = 8
)

// Encode writes a record, an object of JSON, as a file of its own.
func Encode(record any) ([]byte, error) {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return nil, err
	}
	body, ok := bytes.CutSuffix(data, []byte("\n}"))
	if !ok { // an empty object, or no object: nothing to protect
		return append(data, '\n'), nil
	}
	return fmt.Appendf(body, "%s%08x%s\n", recordMark, Sum(body), recordEnd), nil
}

// Line adds the checksum to a line that ends with a JSON object.
func Line(data []byte) []byte {
	body, ok := bytes.CutSuffix(data, []byte("}"))
	if !ok || bytes.HasSuffix(body, []byte("{")) {
		return data
	}
	return fmt.Appendf(bytes.Clone(body), "%s%08x%s", lineMark, Sum(body), lineEnd)
}

// Open checks and removes the checksum of a record or of a line, which may
// have text before its object. Data without one is returned as it is.
func Open(data []byte) ([]byte, error) {
	data = bytes.TrimRight(data, "\n")
	if body, rest, ok := cutLast(data, recordMark); ok {
		return open(body, rest, recordEnd, "\n}")
	}
	if body, rest, ok := cutLast(data, lineMark); ok {
		return open(body, rest, lineEnd, "}")
	}
	return data, nil
}

// Decode reads a record or a line. Any failure to read it is [ErrDamaged].
func Decode(data []byte, into any) error {
	data, err := Open(data)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

func open(body, rest []byte, end, closing string) ([]byte, error) {
	written, ok := bytes.CutSuffix(rest, []byte(end))
	if !ok {
		return nil, fmt.Errorf("%w: it does not end where it should", ErrDamaged)
	}
	// Emptied by hand: "checksum": "".
	if len(written) > 0 && string(written) != fmt.Sprintf("%0*x", digits, Sum(body)) {
		return nil, fmt.Errorf("%w: its checksum does not fit", ErrDamaged)
	}
	return append(body[:len(body):len(body)], closing...), nil
}

func cutLast(data []byte, mark string) (before, after []byte, found bool) {
	at := bytes.LastIndex(data, []byte(mark))
	if at < 0 {
		return data, nil, false
	}
	return data[:at], data[at+len(mark):], true
}
