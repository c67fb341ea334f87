package replace

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// Forms are the ways in which programs write a value, each with the same form of
// a placeholder: as it is, for JSON, a URL, a form or HTML, in hexadecimal, and
// within Base64, at every offset. alloc, which may be nil, gives room for forms
// of the value; some encodings of values with characters that need one pass
// through ordinary memory.
func Forms(value, placeholder []byte, id int, alloc func(n int) []byte) []Pair {
	if alloc == nil {
		alloc = func(n int) []byte { return make([]byte, n) }
	}
	pairs := []Pair{{value, placeholder, id}}
	add := func(old, replacement []byte) {
		if !slices.ContainsFunc(pairs, func(p Pair) bool { return bytes.Equal(p.Old, old) }) {
			pairs = append(pairs, Pair{old, replacement, id})
		}
	}
	if !unreserved(value) {
		for _, text := range escaped(string(value)) {
			old := alloc(len(text))
			copy(old, text)
			add(old, placeholder)
		}
	}
	lower := alloc(hex.EncodedLen(len(value)))
	hex.Encode(lower, value)
	lowerNew := hex.AppendEncode(nil, placeholder)
	add(lower, lowerNew)
	upper := alloc(len(lower))
	for i, c := range lower {
		upper[i] = c
		if c >= 'a' {
			upper[i] = c - 'a' + 'A'
		}
	}
	add(upper, bytes.ToUpper(lowerNew))
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			add(within(encoding, value, before, alloc), within(encoding, placeholder, before, func(n int) []byte { return make([]byte, n) }))
		}
	}
	return pairs
}

// within is the part of text that shows in Base64 in any surroundings, when
// before bytes, modulo three, precede it: the characters that hold only bits of
// text.
func within(encoding *base64.Encoding, text []byte, before int, alloc func(int) []byte) []byte {
	padded := alloc(before + len(text))
	copy(padded[before:], text)
	out := alloc(encoding.EncodedLen(len(padded)))
	encoding.Encode(out, padded)
	return out[(8*before+5)/6 : 8*len(padded)/6]
}

// unreserved reports whether a value looks the same in all encodings of text: the
// characters that RFC 3986 calls unreserved, without the tilde, which some
// encode.
func unreserved(value []byte) bool {
	return !slices.ContainsFunc(value, func(c byte) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	})
}

// escaped are a value's other forms as text.
func escaped(value string) []string {
	var all []string
	for _, escape := range []func(string) string{url.QueryEscape, url.PathEscape, browser} {
		text := escape(value)
		all = append(all, text, lowerEscapes(text))
	}
	all = append(all, strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
	for _, asHTML := range []bool{true, false} {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(asHTML)
		if encoder.Encode(value) == nil {
			text := strings.TrimSuffix(b.String(), "\n")
			text = text[1 : len(text)-1]
			all = append(all, text, strings.ReplaceAll(text, "/", `\/`), asciiJSON(text))
		}
	}
	escapedHTML := html.EscapeString(value)
	all = append(all, escapedHTML, strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#x27;").Replace(escapedHTML))
	return all
}

// browser is JavaScript's encodeURIComponent.
func browser(value string) string {
	return strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(value))
}

// lowerEscapes writes the digits of percent escapes in lower case.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// asciiJSON escapes non-ASCII characters in a JSON string, as Python does.
func asciiJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			writeUnit(&b, 0xd800+r>>10)
			writeUnit(&b, 0xdc00+r&0x3ff)
		default:
			writeUnit(&b, r)
		}
	}
	return b.String()
}

func writeUnit(b *strings.Builder, unit rune) {
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte("0123456789abcdef"[unit>>shift&15])
	}
}
