package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// writeDocument prints value as the one JSON document of a command. JSON
// itself leaves C1 controls and bidirectional overrides as they are; they are
// written as \u escapes, so that the values are unchanged and a terminal that
// shows the document stays unharmed.
func writeDocument(w io.Writer, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot write JSON")
	}
	_, err := w.Write(escapeUnsafe(b.Bytes()))
	return err
}

// escapeUnsafe writes unsafe runes of a JSON document, which can only be in its
// strings, as escapes. The line breaks are the encoder's own.
func escapeUnsafe(document []byte) []byte {
	unsafe := func(r rune) bool { return r != '\n' && unsafeRune(r) }
	var safe []byte
	for {
		i := bytes.IndexFunc(document, unsafe)
		if i < 0 {
			return append(safe, document...)
		}
		r, size := utf8.DecodeRune(document[i:])
		safe = append(safe, document[:i]...)
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		} else {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
		document = document[i+size:]
	}
}

// list makes an empty array out of a nil slice, which JSON writes as null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
