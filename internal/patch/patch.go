// Package patch changes settings files of other programs by position: it finds
// where in the bytes a value is and says which bytes to replace, so that everything
// else stays as its owner wrote it, comments, order and line ends included.
//
// It deliberately reads and writes no files, and knows no program whose
// settings they are. Start reading at [Open].
package patch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Format is how a file is written.
type Format string

// The formats. JSON files may have comments and trailing commas.
const (
	JSON Format = "json"
	TOML Format = "toml"
	YAML Format = "yaml"
)

// Splice replaces Old, which begins at the byte At, with New.
type Splice struct {
	At  int    `json:"at"`
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// Apply applies splices, which are in order and do not overlap.
func Apply(content []byte, splices []Splice) ([]byte, error) {
	var changed []byte
	done := 0
	for _, s := range splices {
		if s.At < done || s.At > len(content) || !bytes.HasPrefix(content[s.At:], []byte(s.Old)) {
			return nil, fault.New(fault.Internal, "cannot change the file at byte %d: something else stands there", s.At)
		}
		changed = append(changed, content[done:s.At]...)
		changed = append(changed, s.New...)
		done = s.At + len(s.Old)
	}
	return append(changed, content[done:]...), nil
}

// Invert returns the splices that undo others, for the content that they made.
func Invert(splices []Splice) []Splice {
	inverse := make([]Splice, len(splices))
	shift := 0
	for i, s := range splices {
		inverse[i] = Splice{At: s.At + shift, Old: s.New, New: s.Old}
		shift += len(s.New) - len(s.Old)
	}
	return inverse
}

// Object is a value with its keys in order. Values are Objects, []string,
// strings, bools and ints.
type Object []Field

// Field is one key of an [Object].
type Field struct {
	Key   string
	Value any
}

// Raw is a value as written in a file of the same format.
type Raw string

// Document is a file that was read. A change returns splices of the opened
// content; the document itself does not change.
type Document interface {
	// Get returns the value at a path as encoding/json would, or nil and false.
	Get(path ...string) (value any, there bool)
	// Raw returns the text of the value at a path; "" if there is none, or if
	// it is in more than one place.
	Raw(path ...string) string
	// Set puts a value at a path, replacing any that is there.
	Set(path []string, value any) ([]Splice, error)
	// Append adds strings to the list at a path.
	Append(path []string, items []string) ([]Splice, error)
	// Remove removes the value at a path, and anything left empty without it.
	Remove(path []string) ([]Splice, error)
	// Drop removes strings from the list at a path.
	Drop(path []string, items []string) ([]Splice, error)
	// Empty reports whether the file is empty, without even comments.
	Empty() bool
}

// Open reads a file. Mistakes in it are errors of kind Invalid that name line
// and column.
func Open(format Format, content []byte) (Document, error) {
	switch format {
	case JSON:
		return openJSON(content)
	case TOML:
		return openTOML(content)
	case YAML:
		return openYAML(content)
	}
	return nil, fault.New(fault.Internal, "there is no format %q", format)
}

// Same reports whether two values are the same, whatever their types.
func Same(a, b any) bool { return reflect.DeepEqual(Plain(a), Plain(b)) }

// Plain returns a value in the types of encoding/json.
func Plain(value any) any {
	text, err := json.Marshal(unordered(value))
	if err != nil {
		return value
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return value
	}
	return plain
}

func unordered(value any) any {
	object, ok := value.(Object)
	if !ok {
		return value
	}
	plain := map[string]any{}
	for _, field := range object {
		plain[field.Key] = unordered(field.Value)
	}
	return plain
}

// stringsOf returns the strings of a list in a document; false if it is
// something else.
func stringsOf(value any) ([]string, bool) {
	items, ok := value.([]any)
	if !ok {
		return nil, false
	}
	var all []string
	for _, item := range items {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all, true
}

// absent returns the items that the list lacks.
func absent(list, items []string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool { return slices.Contains(list, item) })
}

// lineEnd returns the line ending of a file.
func lineEnd(content []byte) string {
	if i := bytes.IndexByte(content, '\n'); i > 0 && content[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// lineStart returns where the line that holds an offset begins.
func lineStart(content []byte, at int) int { return bytes.LastIndexByte(content[:at], '\n') + 1 }

// leading returns the blanks before an offset on its line, and whether nothing
// else is before it.
func leading(content []byte, at int) (blanks string, only bool) {
	line := content[lineStart(content, at):at]
	rest := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), len(rest) == 0
}

// wrong returns an error at a place in a file.
func wrong(content []byte, at int, format string, args ...any) error {
	at = min(at, len(content))
	line := bytes.Count(content[:at], []byte("\n")) + 1
	column := len([]rune(string(content[lineStart(content, at):at]))) + 1
	return fault.New(fault.Invalid, "line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
}

// named returns a path as people write it.
func named(path []string) string { return strings.Join(path, ".") }
