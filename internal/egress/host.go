package egress

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxHost is the longest name in its text form (RFC 1035: 255 bytes on the
// wire, which is 253 without the root).
const maxHost = 253

// CanonicalHost returns the one spelling of a host name that is compared with
// rules, looked up and dialled: lower case, ASCII (IDNA), no trailing dot. It
// refuses text that only looks like a name, above all the many spellings of an
// address (0x7f.1, 017700000001, 2130706433) that some resolvers accept. It is
// a fixed point: CanonicalHost of its own result is that result.
func CanonicalHost(name string) (string, error) {
	canonical, cause := canonicalHost(name)
	if cause != "" {
		return "", fault.New(fault.Invalid, "cannot use %q as a host name: %s", shorten(name), cause)
	}
	return canonical, nil
}

func canonicalHost(name string) (canonical, cause string) {
	switch {
	case name == "" || name == ".":
		return "", "it is empty"
	case len(name) > 4*maxHost:
		return "", "it is too long"
	case !utf8.ValidString(name):
		return "", "it is not UTF-8"
	}
	for _, r := range name {
		if cause := forbidden(r); cause != "" {
			return "", cause
		}
	}
	canonical = lowerASCII(name)
	if !ascii(canonical) || strings.Contains(canonical, "xn--") {
		if canonical, cause = toASCII(canonical); cause != "" {
			return "", cause
		}
	}
	canonical = strings.TrimSuffix(canonical, ".")
	if cause := checkLabels(canonical); cause != "" {
		return "", cause
	}
	return canonical, ""
}

// forbidden names what turns a name into something else for another parser: a
// URL's user or port, an escape, the end of a C string.
func forbidden(r rune) string {
	switch {
	case r == 0:
		return "it holds a NUL byte"
	case r <= ' ' || r == 0x7f:
		return "it holds a space or a control character"
	case r >= 0x80: // judged by IDNA
		return ""
	case r == '@':
		return "it holds a user name; give the host alone"
	case r == '%':
		return "it holds a percent escape"
	case r == ':':
		return "it holds a colon"
	case r == '*':
		return "a wildcard stands only for whole leading labels, as in *.example.org"
	case !hostByte(byte(r)) && r != '.':
		return "it holds the character " + strconv.QuoteRune(r)
	}
	return ""
}

// hostByte reports whether c may stand in a label. The underscore is not in
// RFC 1123, but real hosts have it.
func hostByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// toASCII applies UTS 46 as browsers do for look-ups. A second pass must change
// nothing, or one name could have two spellings.
func toASCII(name string) (string, string) {
	profile := idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false))
	once, err := profile.ToASCII(name)
	if err != nil {
		return "", "it is not a valid international name"
	}
	once = lowerASCII(once)
	twice, err := profile.ToASCII(once)
	if err != nil || twice != once {
		return "", "it is not a valid international name"
	}
	for _, r := range once {
		if r >= 0x80 || forbidden(r) != "" {
			return "", "it is not a valid international name"
		}
	}
	return once, ""
}

func checkLabels(name string) string {
	if len(name) > maxHost {
		return "it is longer than 253 bytes"
	}
	labels := 0
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return "it has an empty label"
		case len(label) > 63:
			return "it has a label longer than 63 bytes"
		}
		labels++
		last = label
	}
	// inet_aton(3) and the URL standard read a name whose last label is a
	// number, decimal, octal or hexadecimal, as an address.
	if digits(last) || strings.HasPrefix(last, "0x") && hexadecimal(last[2:]) {
		return "it is a number, which some programs read as an address; write an address as four decimal numbers"
	}
	return ""
}

// parseAddr reads an address in its one plain spelling and unmaps an IPv4
// address inside IPv6. Zones name an interface of one machine and are refused.
func parseAddr(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

func lowerASCII(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if b[j] >= 'A' && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func hexadecimal(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true // "0x" alone is a zero for inet_aton
}

// shorten keeps foreign text in messages short; %q does the escaping.
func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
