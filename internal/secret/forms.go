package secret

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// leastLine is the length of a line that is a secret by itself.
const leastLine = 16

// EachForm calls each with a value in every form in which programs write it,
// also as a shell's argument in single quotes, as JSON within JSON, and line by
// line where it has several: records are read by lines. A form is wiped after
// the last call.
func EachForm(value []byte, each func(form []byte)) {
	var memory memory
	defer memory.wipe()
	for _, pair := range replace.Forms(value, bytes.Repeat([]byte("x"), len(value)), 0, memory.alloc) {
		each(pair.Old)
	}
	if bytes.ContainsRune(value, '\'') {
		each([]byte(strings.ReplaceAll(string(value), "'", `'\''`)))
	}
	escaped := string(value)
	for range 3 { // a document in a document in a line
		data, err := json.Marshal(escaped)
		if next := string(data[1 : len(data)-1]); err == nil && next != escaped {
			escaped = next
			each([]byte(escaped))
		}
	}
	if !bytes.Contains(bytes.TrimSpace(value), []byte("\n")) {
		return
	}
	for line := range bytes.Lines(value) {
		line = bytes.TrimSpace(line)
		if len(line) >= leastLine && !bytes.HasPrefix(line, []byte("-----")) { // which begins and ends a key
			EachForm(line, each)
		}
	}
}
