// Package fault is the one error type that reaches a user: a kind, a sentence
// and a hint with the next command to type.
//
// It deliberately knows nothing of exit codes, HTTP or MCP; each surface keeps
// one table from [Kind] to its own numbers.
package fault

import (
	"errors"
	"fmt"
)

// Kind classifies an error for every surface.
type Kind string

// The kinds, stable in JSON output and documented exit codes.
const (
	Invalid       Kind = "invalid"
	NotFound      Kind = "not_found"
	AlreadyExists Kind = "already_exists"
	Conflict      Kind = "conflict"
	Unsupported   Kind = "unsupported"
	Denied        Kind = "denied"
	Unavailable   Kind = "unavailable"
	Timeout       Kind = "timeout"
	Canceled      Kind = "canceled"
	Internal      Kind = "internal"
)

// Kinds lists every kind, for the tests that walk the tables of each surface.
func Kinds() []Kind {
	return []Kind{Invalid, NotFound, AlreadyExists, Conflict, Unsupported, Denied, Unavailable, Timeout, Canceled, Internal}
}

// Error is an error with a kind and, where one exists, the next command to type.
type Error struct {
	Kind  Kind
	Text  string // "cannot <verb> <thing>", lower case, user values quoted
	Hint  string // a command or an action; empty if there is none
	Cause error  // appended to Text after ": "; may be nil
}

// New makes an error of a kind; format follows fmt.Errorf, without %w.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Wrap puts a sentence and a kind in front of cause. With an empty kind it
// keeps the kind that cause already has.
func Wrap(kind Kind, cause error, format string, args ...any) *Error {
	e := New(kind, format, args...)
	e.Cause = cause
	if kind == "" {
		e.Kind = KindOf(cause)
	}
	return e
}

// WithHint returns e with the next thing to type.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Text
	}
	return e.Text + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf finds the kind of the outermost *Error in err's chain; Internal if
// there is none, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// HintOf finds the first hint in err's chain. A disk that cannot be written
// always has one.
func HintOf(err error) string {
	for rest := err; rest != nil; {
		var e *Error
		if !errors.As(rest, &e) {
			break
		}
		if e.Hint != "" {
			return e.Hint
		}
		rest = e.Cause
	}
	return diskHint(err)
}
