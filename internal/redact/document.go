package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// document removes secrets from a JSON object or array, string by string, and
// leaves everything else as it is written. An escaped quote would otherwise end
// a value too early, and \u hides any word. ok is false for any other text.
func (s Secrets) document(text string) (clean string, ok bool) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid([]byte(text)) {
		return "", false
	}
	d := documentReader{s: s, text: text}
	d.skip()
	d.value(false)
	d.out.WriteString(text[d.kept:])
	return d.out.String(), true
}

// documentReader goes through valid JSON.
type documentReader struct {
	s    Secrets
	text string
	at   int
	out  strings.Builder
	kept int // up to here text is in out
}

// skip passes over what separates values.
func (d *documentReader) skip() {
	for d.at < len(d.text) && strings.IndexByte(" \t\r\n,:", d.text[d.at]) >= 0 {
		d.at++
	}
}

// replace writes another string in the place of text[from:d.at].
func (d *documentReader) replace(from int, with string) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(with) // a string
	d.out.WriteString(d.text[d.kept:from])
	d.out.Write(bytes.TrimRight(b.Bytes(), "\n"))
	d.kept = d.at
}

// literal reads a string.
func (d *documentReader) literal() string {
	from := d.at
	for d.at++; d.text[d.at] != '"'; d.at++ {
		if d.text[d.at] == '\\' {
			d.at++
		}
	}
	d.at++
	inner := d.text[from+1 : d.at-1]
	if !strings.Contains(inner, `\`) {
		return inner
	}
	var decoded string
	_ = json.Unmarshal([]byte(d.text[from:d.at]), &decoded) // it is valid
	return decoded
}

// value reads a value. Its name, or that of its list, may say that it is a secret.
func (d *documentReader) value(secret bool) {
	from := d.at
	switch c := d.text[d.at]; {
	case c == '{':
		d.object()
	case c == '[':
		d.list(secret)
	case c == '"':
		text := d.literal()
		clean := d.s.Text(text)
		if secret && text != "" {
			clean = Gone
		}
		if clean != text {
			d.replace(from, clean)
		}
	default:
		for d.at < len(d.text) && strings.IndexByte(",]} \t\r\n", d.text[d.at]) < 0 {
			d.at++
		}
		if secret && (c == '-' || c >= '0' && c <= '9') {
			d.replace(from, Gone)
		}
	}
}

func (d *documentReader) object() {
	for d.at++; ; {
		d.skip()
		if d.text[d.at] == '}' {
			d.at++
			return
		}
		from := d.at
		name := d.literal()
		if clean := d.s.ByValue(name); clean != name {
			d.replace(from, clean)
		}
		d.skip()
		lower := strings.ToLower(name)
		number := strings.IndexByte("-0123456789", d.text[d.at]) >= 0
		d.value(Name(name) && !(number && strings.HasSuffix(lower, "tokens")) || strings.HasSuffix(lower, "authorization"))
	}
}

// list reads a list. One of strings may be the arguments of a command.
func (d *documentReader) list(secret bool) {
	if !secret && d.arguments() {
		return
	}
	for d.at++; ; {
		d.skip()
		if d.text[d.at] == ']' {
			d.at++
			return
		}
		d.value(secret)
	}
}

// arguments reads a list of several strings as [Secrets.Argv] does; it does nothing
// with any other list.
func (d *documentReader) arguments() bool {
	ahead := documentReader{text: d.text, at: d.at + 1}
	var texts []string
	var ends [][2]int
	for ahead.skip(); ahead.text[ahead.at] == '"'; ahead.skip() {
		from := ahead.at
		texts = append(texts, ahead.literal())
		ends = append(ends, [2]int{from, ahead.at})
	}
	if ahead.text[ahead.at] != ']' || len(texts) < 2 {
		return false
	}
	for i, clean := range d.s.Argv(texts) {
		if clean != texts[i] {
			d.at = ends[i][1]
			d.replace(ends[i][0], clean)
		}
	}
	d.at = ahead.at + 1
	return true
}
