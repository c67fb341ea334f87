package attribute

import (
	"strings"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// encoding returns working-tree-encoding, or "" if it changes nothing.
func (a Attributes) encoding() string {
	if form, ok := utfForm(a.WorkingTreeEncoding); ok && form == "8" {
		return ""
	}
	return a.WorkingTreeEncoding
}

// utfForm returns what follows "UTF" in the name of a Unicode encoding, in
// upper case and without the dash: "8", "16", "16LE-BOM".
func utfForm(name string) (string, bool) {
	form, ok := strings.CutPrefix(strings.ToUpper(name), "UTF")
	return strings.TrimPrefix(form, "-"), ok
}

// decode turns content in the named encoding into UTF-8. The names are those
// of git and of iconv(1), which git asks; an encoding that iconv knows and
// this package does not is an error, never a guess.
func decode(content []byte, name string) ([]byte, error) {
	var decoded []byte
	var ok bool
	if form, isUTF := utfForm(name); isUTF {
		w, found := findWide(form)
		marked, big := w.marked(content)
		switch {
		case !found || w.mark == markWritten:
			return nil, unknownEncoding(name)
		case w.mark == markForbidden && marked:
			return nil, fault.New(fault.Invalid, "cannot convert from encoding %q: a byte order mark is prohibited", name).
				WithHint("set working-tree-encoding=UTF-%d in .gitattributes", 8*w.size)
		case w.mark == markRequired && !marked:
			return nil, fault.New(fault.Invalid, "cannot convert from encoding %q: a byte order mark is required", name).
				WithHint("set working-tree-encoding=UTF-%dLE or UTF-%[1]dBE in .gitattributes", 8*w.size)
		case marked:
			w.big = big
			content = content[w.size:]
		}
		decoded, ok = w.decode(content)
	} else {
		c := findCharset(name)
		if c == nil {
			return nil, unknownEncoding(name)
		}
		decoded, ok = c.decode(content)
	}
	if !ok {
		return nil, fault.New(fault.Invalid, "cannot convert from encoding %q: the content is not in it", name)
	}
	return decoded, nil
}

// encode is the reverse.
func encode(content []byte, name string) ([]byte, error) {
	if form, isUTF := utfForm(name); isUTF {
		w, found := findWide(form)
		switch {
		case !found:
			return nil, unknownEncoding(name)
		case !utf8.Valid(content):
			return nil, notUTF8(name)
		}
		return w.encode(content), nil
	}
	c := findCharset(name)
	if c == nil {
		return nil, unknownEncoding(name)
	}
	if !utf8.Valid(content) {
		return nil, notUTF8(name)
	}
	encoded, ok := c.encode(content)
	if !ok {
		return nil, fault.New(fault.Invalid, "cannot convert to encoding %q: it lacks a character of the content", name)
	}
	return encoded, nil
}

func unknownEncoding(name string) error {
	return fault.New(fault.Unsupported, "cannot convert with encoding %q: it is not known here", name).
		WithHint("check working-tree-encoding in .gitattributes, or store the file as UTF-8")
}

func notUTF8(name string) error {
	return fault.New(fault.Invalid, "cannot convert to encoding %q: the content is not UTF-8", name)
}

// Decode turns text in the named encoding into UTF-8; ok is false where the
// encoding is not known here, or the text is not in it.
func Decode(text []byte, name string) (decoded []byte, ok bool) {
	decoded, err := decode(text, name)
	return decoded, err == nil
}
