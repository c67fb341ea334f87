package egress

import (
	"strings"
	"unicode/utf8"
)

// cleanPath returns the one spelling of a request path that path rules are compared with,
// without the query: escapes of unreserved characters are decoded (RFC 3986, section 6.2.2.2).
// A path on whose meaning servers disagree has none: empty and dot segments, path parameters
// (;), backslashes, escaped slashes, percents and control characters, and escapes that are not
// UTF-8, some of which a lenient decoder takes for a slash or a dot. A path without a clean form
// matches no allow rule with a path and every deny rule with one.
func cleanPath(target string) (string, bool) {
	path, _, _ := strings.Cut(target, "?")
	if !strings.HasPrefix(path, "/") {
		return "", false
	}
	var b strings.Builder
	decodes := []byte{} // what the escapes stand for
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c <= ' ' || c >= 0x7f || c == '\\' || c == '#' || c == ';':
			return "", false
		case c != '%':
			b.WriteByte(c)
			decodes = append(decodes, c)
		default:
			if i+2 >= len(path) || !hexadecimal(path[i+1:i+3]) {
				return "", false
			}
			decoded := unhex(path[i+1])<<4 | unhex(path[i+2])
			switch {
			case decoded < ' ' || decoded == '/' || decoded == '\\' || decoded == '%' || decoded == ';' || decoded == 0x7f:
				return "", false
			case unreserved(decoded):
				b.WriteByte(decoded)
			default:
				b.WriteString("%" + upperASCII(path[i+1:i+3]))
			}
			decodes = append(decodes, decoded)
			i += 2
		}
	}
	if !utf8.Valid(decodes) {
		return "", false
	}
	clean := b.String()
	segments := strings.Split(clean[1:], "/")
	for i, segment := range segments {
		if segment == "." || segment == ".." || segment == "" && i < len(segments)-1 {
			return "", false
		}
	}
	return clean, true
}

// CleanPath returns the one spelling of a request's path, without its query, that
// path rules are compared with. It is false where servers may read it in two ways.
func CleanPath(target string) (string, bool) { return cleanPath(target) }

// Below reports whether a request's path lies under a prefix, in whole segments.
func Below(prefix, target string) bool {
	path, ok := cleanPath(target)
	return ok && underPath(prefix, path)
}

// unreserved is RFC 3986's list of characters that an escape never changes.
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

func unhex(c byte) byte {
	if c >= '0' && c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// underPath reports whether a clean path lies under the prefix of a rule, in
// whole segments.
func underPath(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}
