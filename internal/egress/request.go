package egress

import (
	"bytes"
	"strconv"
	"strings"
)

// maxHead bounds the head of an HTTP/1 request, as most servers do.
const maxHead = 32 << 10

// preface begins HTTP/2 without TLS (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// request is the head of an HTTP/1 request, read so strictly that no server
// behind us can read it differently.
type request struct {
	method   string
	target   string // as it came
	path     string // origin form, query included
	scheme   string // of the absolute form; empty otherwise
	version  string // HTTP/1.0 or HTTP/1.1
	host     string // as it came in Host
	absolute string // authority of the absolute form; empty otherwise
	length   int64  // of the body; -1 when it is chunked
	upgrade  string // lower case; empty when the client does not ask for one
	fields   []field
}

// field is one header line as it came, without the line end.
type field struct {
	name string // lower case
	line []byte
}

// readRequest reads a complete head, up to and including the empty line.
func readRequest(head []byte) (request, string) {
	var r request
	lines := bytes.Split(bytes.TrimSuffix(head, []byte("\r\n\r\n")), []byte("\r\n"))
	for _, line := range lines {
		for _, c := range line {
			if c < ' ' && c != '\t' || c == 0x7f {
				return r, "its HTTP head holds a control character or a bare line end"
			}
		}
	}
	if cause := r.readLine(string(lines[0])); cause != "" {
		return r, cause
	}
	if len(lines) > 256 {
		return r, "its HTTP head has too many lines"
	}
	return r, r.readFields(lines[1:])
}

func (r *request) readLine(line string) string {
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !token(parts[0]) || parts[1] == "" {
		return "it does not begin with an HTTP request"
	}
	r.method, r.target, r.version = parts[0], parts[1], parts[2]
	if r.version != "HTTP/1.1" && r.version != "HTTP/1.0" {
		return "its HTTP version is not known"
	}
	for i := range len(r.target) {
		if c := r.target[i]; c <= ' ' || c == '#' || c == '\\' {
			return "its HTTP target holds a bad character"
		}
	}
	switch {
	case upperASCII(r.method) == "CONNECT":
		return "it asks for a CONNECT tunnel, which hides where it leads"
	case r.target[0] == '/':
		r.path = r.target
	case r.target == "*" && r.method == "OPTIONS":
		r.path = "*"
	default:
		scheme, rest, ok := strings.Cut(r.target, "://")
		if scheme = lowerASCII(scheme); !ok || scheme != HTTP && scheme != HTTPS {
			return "its HTTP target is neither a path nor a URL"
		}
		r.scheme = scheme
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		r.absolute, r.path = rest[:end], rest[end:]
		if r.absolute == "" {
			return "its HTTP target names no host"
		}
		if !strings.HasPrefix(r.path, "/") {
			r.path = "/" + r.path
		}
	}
	return ""
}

// readFields reads the header lines. What RFC 9112 lets a proxy repair is
// refused instead, because servers may read it differently: two lengths, a
// length beside an encoding, folded lines, space before the colon.
func (r *request) readFields(lines [][]byte) string {
	const unset = -2
	r.length = unset
	encodings, connection := 0, ""
	for _, line := range lines {
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || !token(name) {
			return "its HTTP head has a malformed line"
		}
		name, value = lowerASCII(name), strings.Trim(value, " \t")
		r.fields = append(r.fields, field{name, line})
		switch name {
		case "host":
			if r.host != "" || value == "" {
				return "it has an empty HTTP Host or more than one"
			}
			r.host = value
		case "content-length":
			length, err := strconv.ParseUint(value, 10, 63)
			if r.length != unset || err != nil || !digits(value) {
				return "its HTTP body has no single plain length"
			}
			r.length = int64(length)
		case "transfer-encoding":
			if encodings++; encodings > 1 || lowerASCII(value) != "chunked" || r.version != "HTTP/1.1" {
				return "its HTTP body has an encoding other than plain chunks"
			}
		case "upgrade":
			if r.upgrade != "" {
				return "it asks for more than one HTTP upgrade"
			}
			r.upgrade = lowerASCII(value)
		case "connection":
			connection += "," + lowerASCII(value)
		}
	}
	for _, essential := range []string{"host", "content-length", "transfer-encoding"} {
		if hasToken(connection, essential) {
			return "its HTTP Connection line would make a hop drop " + essential
		}
	}
	switch {
	case r.host == "":
		return "it has no HTTP Host"
	case encodings > 0 && r.length != unset:
		return "its HTTP body has both a length and an encoding"
	case encodings > 0:
		r.length = -1
	case r.length == unset:
		r.length = 0
	}
	if !hasToken(connection, "upgrade") {
		r.upgrade = ""
	}
	return ""
}

// head writes the request again. With proxy it has what a proxy of the host
// expects: the full URL and the proxy's password. It leaves out an upgrade on
// demand, as RFC 9110, section 7.8, lets any hop do.
func (r *request) head(withoutUpgrade bool, proxy *forward) []byte {
	var b bytes.Buffer
	target := r.target
	if proxy != nil {
		target = "http://" + proxy.authority + strings.TrimPrefix(r.path, "*")
	}
	b.WriteString(r.method + " " + target + " " + r.version + "\r\n")
	for _, f := range r.fields {
		switch {
		case withoutUpgrade && (f.name == "upgrade" || f.name == "http2-settings"):
			continue
		case withoutUpgrade && f.name == "connection":
			if line := withoutTokens(string(f.line), "upgrade", "http2-settings"); line != "" {
				b.WriteString(line + "\r\n")
			}
			continue
		case proxy != nil && f.name == "proxy-authorization":
			continue // the sandbox has no business with the host's proxy
		}
		b.Write(f.line)
		b.WriteString("\r\n")
	}
	if proxy != nil && proxy.authorization != "" {
		b.WriteString("Proxy-Authorization: " + proxy.authorization + "\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// withoutTokens removes tokens from a Connection line; a line that had no
// others is left empty.
func withoutTokens(line string, drop ...string) string {
	name, value, _ := strings.Cut(line, ":")
	var keep []string
next:
	for one := range strings.SplitSeq(value, ",") {
		one = strings.Trim(one, " \t")
		for _, token := range drop {
			if lowerASCII(one) == token {
				continue next
			}
		}
		if one != "" {
			keep = append(keep, one)
		}
	}
	if len(keep) == 0 {
		return ""
	}
	return name + ": " + strings.Join(keep, ", ")
}

func hasToken(list, token string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if strings.Trim(one, " \t") == token {
			return true
		}
	}
	return false
}

// token reports whether s is RFC 9110's token, as methods and field names are.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if unreserved(c) && c < 0x7f || strings.IndexByte("!#$%&'*+^`|", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}

// agrees reports whether an authority of the request names the connection's
// destination: the same host, and the same port where it gives one.
func (t Target) agrees(authority string) bool {
	host, port, ok := splitAuthority(authority)
	if !ok || port != 0 && port != t.Port {
		return false
	}
	if addr, ok := parseAddr(host); ok {
		return t.Host == "" && addr == t.Addr
	}
	canonical, cause := canonicalHost(host)
	return cause == "" && t.Host != "" && canonical == t.Host
}

// splitAuthority reads host, host:port, [v6] or [v6]:port; the port is 0 when
// there is none.
func splitAuthority(text string) (host string, port uint16, ok bool) {
	host, tail, hasPort := text, "", false
	if strings.HasPrefix(text, "[") {
		var closed bool
		host, tail, closed = strings.Cut(text[1:], "]")
		if !closed || !strings.Contains(host, ":") || tail != "" && tail[0] != ':' {
			return "", 0, false
		}
		hasPort, tail = tail != "", strings.TrimPrefix(tail, ":")
	} else {
		host, tail, hasPort = strings.Cut(text, ":")
	}
	if !hasPort {
		return host, 0, host != ""
	}
	port, ok = parsePort(tail)
	return host, port, ok && host != ""
}
