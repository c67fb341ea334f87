package wire

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxText bounds every text that comes over the wire and may be shown.
const maxText = 8 << 10

// Fail answers a request with err as a KindError frame: its kind, its whole
// sentence and its hint.
func Fail(w io.Writer, err error) error {
	return WriteJSON(w, KindError, Failure{
		Kind: string(fault.KindOf(err)),
		Text: cut(err.Error()),
		Hint: cut(fault.HintOf(err)),
	})
}

// failure turns the payload of a KindError frame back into an error. A kind
// that this version does not know becomes fault.Internal.
func failure(payload []byte) *fault.Error {
	var f Failure
	if err := json.Unmarshal(payload, &f); err != nil || f.Text == "" {
		return fault.New(fault.Unavailable, "cannot understand the sandbox's error")
	}
	kind := fault.Kind(f.Kind)
	if !slices.Contains(fault.Kinds(), kind) {
		kind = fault.Internal
	}
	return &fault.Error{Kind: kind, Text: printable(f.Text), Hint: printable(f.Hint)}
}

// printable removes terminal escapes from a text chosen inside, where any
// program can print anything; newlines and tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, cut(text))
}

func cut(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
