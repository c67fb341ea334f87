package secret

import (
	"bytes"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// EachForm calls each with a value in every form in which programs write it,
// also as a shell's argument in single quotes. A form is wiped after the last
// call.
func EachForm(value []byte, each func(form []byte)) {
	var memory memory
	defer memory.wipe()
	for _, pair := range replace.Forms(value, bytes.Repeat([]byte("x"), len(value)), 0, memory.alloc) {
		each(pair.Old)
	}
	if bytes.ContainsRune(value, '\'') {
		each([]byte(strings.ReplaceAll(string(value), "'", `'\''`)))
	}
}
