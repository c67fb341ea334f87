package egress

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The protocols of a rule and of a [Target]. A target's protocol is what its
// connection was seen to carry; TCP there means bytes that were not looked at.
const (
	TCP   = "tcp"
	UDP   = "udp"
	HTTP  = "http"
	HTTPS = "https"
)

// Rule is one line of an allow or deny list:
//
//	preset:npm                              the rules of a preset
//	api.example.com                         ports 443 and 80, TLS SNI or HTTP Host must agree
//	*.example.org:443                       one or more labels before it, never example.org itself
//	github.com:22                           any protocol over TCP on that port
//	example.com:*                           every port
//	10.1.2.3:5432   10.0.0.0/8   [2001:db8::1]:443   [2001:db8::/32]:443
//	tcp://ssh.example.com:443               TCP that is not inspected
//	udp://time.example.com:123
//	https://example.com   http://example.com:8080/public/
//	GET,HEAD https://api.example.com/repos/me/
//
// A path is a prefix of whole segments: /repos/me covers /repos/me and
// /repos/me/x, not /repos/meow; /repos/me/ covers only what is below.
// In a deny list a missing port means every port, and a missing protocol every
// protocol.
type Rule struct {
	From string // the preset that it came from, as "preset:npm"; empty when written out

	preset   string
	protocol string // empty when the rule names none
	host     string // canonical, without the wildcard
	wildcard bool
	network  netip.Prefix // valid for a rule about addresses
	port     uint16       // 0 when the rule names none, or every port
	anyPort  bool
	methods  []string // upper case; empty means all
	path     string   // canonical prefix; empty means all
}

// StandsForNames reports whether r is about addresses that [Names] gives to names
// alone: no connection to one of them is judged by its address.
func (r Rule) StandsForNames() bool {
	v4, v6 := ranges()
	within := func(outer netip.Prefix) bool {
		return r.network.Bits() >= outer.Bits() && outer.Contains(r.network.Addr())
	}
	return r.network.IsValid() && (within(v4) || within(v6))
}

// ParseAllowed is ParseRule for a rule of an allow list. It also refuses rules about
// addresses that stand for names, which would have no effect.
func ParseAllowed(text string) (Rule, error) {
	r, err := ParseRule(text)
	if err == nil && r.StandsForNames() {
		err = fault.New(fault.Invalid, "cannot allow %q: inside, such an address stands for a name, and only the name can be allowed", r.String()).
			WithHint("litterbox network NAME  # shows the name to write instead")
	}
	return r, err
}

// ParseRule reads one rule. Its errors have kind fault.Invalid and a hint
// about what to write instead.
func ParseRule(text string) (Rule, error) {
	r, cause, hint := parseRule(strings.Trim(text, " \t"))
	if cause == "" {
		return r, nil
	}
	err := fault.New(fault.Invalid, "cannot use the network rule %q: %s", shorten(text), cause)
	if hint != "" {
		err = err.WithHint("%s", hint)
	}
	return Rule{}, err
}

func parseRule(text string) (r Rule, cause, hint string) {
	switch {
	case text == "":
		return r, "it is empty", "write a host, such as api.example.com"
	case text == "*":
		return r, "it would match everything", `to allow everything, set default = "allow"`
	case len(text) > 2048:
		return r, "it is longer than 2048 bytes", ""
	}
	if name, ok := strings.CutPrefix(text, "preset:"); ok {
		if !presetName(name) {
			return r, "a preset's name has only lower-case letters, digits and dashes", "litterbox network presets"
		}
		return Rule{preset: name}, "", ""
	}
	if methods, rest, ok := strings.Cut(text, " "); ok {
		if r.methods, cause = parseMethods(methods); cause != "" {
			return r, cause, "write GET,HEAD https://api.example.com/path/"
		}
		text = strings.TrimLeft(rest, " ")
	}
	if protocol, rest, ok := strings.Cut(text, "://"); ok {
		r.protocol, text = lowerASCII(protocol), rest
		if !slices.Contains([]string{TCP, UDP, HTTP, HTTPS}, r.protocol) {
			return r, "it names the unknown protocol " + strconv.Quote(shorten(protocol)), "use tcp://, udp://, http:// or https://, or no protocol at all"
		}
	}
	authority, _, _ := strings.Cut(text, "/")
	if _, after, ok := strings.Cut(authority, "@"); ok {
		host, _, _ := strings.Cut(after, ":")
		return r, "it holds a user name", "write the host alone, with the port that is meant, as in " + host + ":22"
	}
	if text, cause, hint = r.cutPath(text); cause != "" {
		return r, cause, hint
	}
	if cause, hint = r.parseAuthority(text); cause != "" {
		return r, cause, hint
	}
	if len(r.methods) > 0 && r.protocol != HTTP && r.protocol != HTTPS {
		return r, "methods need http:// or https://", "write GET https://" + r.authority()
	}
	if r.protocol == UDP && r.port == 0 && !r.anyPort {
		return r, "udp needs a port", "write udp://" + r.authority() + ":123"
	}
	return r, "", ""
}

// cutPath takes the path off an http or https rule and leaves the authority.
func (r *Rule) cutPath(text string) (rest, cause, hint string) {
	// A slash inside brackets, and one after an address without http, belongs
	// to a network.
	from := strings.IndexByte(text, ']') + 1
	slash := strings.IndexByte(text[from:], '/')
	if slash < 0 {
		return text, "", ""
	}
	rest, path := text[:from+slash], text[from+slash:]
	if r.protocol != HTTP && r.protocol != HTTPS {
		if _, isAddr := parseAddr(rest); isAddr {
			return text, "", ""
		}
		if from > 0 {
			return "", "the length of a network goes inside the brackets", "write [2001:db8::/32]:443"
		}
		return "", "a path needs http:// or https://", "write https://" + text
	}
	if _, isAddr := parseAddr(rest); isAddr && digits(path[1:]) {
		return "", "it can be read as a network or as a path", "write the network without http, as in 10.0.0.0/8:443"
	}
	if strings.ContainsAny(path, "?#") {
		return "", "a rule looks at the path only, not at a query", "leave out what follows the ?"
	}
	if strings.HasSuffix(path, "*") {
		return "", "a path is a prefix and needs no *", "write " + r.protocol + "://" + strings.TrimRight(text, "*")
	}
	clean, ok := cleanPath(path)
	if !ok {
		return "", "its path is not in plain form", "write it without //, ., .., \\ and escaped slashes"
	}
	r.path = clean
	if r.path == "/" {
		r.path = "" // every path begins with it
	}
	return rest, "", ""
}

// parseAuthority reads a host, address or network with an optional port.
func (r *Rule) parseAuthority(text string) (cause, hint string) {
	host, port := text, ""
	hasPort := false
	switch {
	case strings.HasPrefix(text, "["):
		inner, after, ok := strings.Cut(text[1:], "]")
		if !ok || after != "" && after[0] != ':' {
			return "its brackets are not closed or are followed by something other than a port", "write [2001:db8::1]:443"
		}
		if !strings.Contains(inner, ":") {
			return "brackets are for IPv6 addresses", "write " + strings.Trim(inner, "[]") + after
		}
		host = inner
		if after != "" {
			port, hasPort = after[1:], true
		}
	case strings.Count(text, ":") == 1:
		host, port, hasPort = strings.Cut(text, ":")
	case strings.Count(text, ":") > 1:
		if bare, _, _ := strings.Cut(text, "/"); !isAddress(bare) {
			return "it has more than one colon and is not an IPv6 address", "write host:port, or an IPv6 address as [2001:db8::1]:443"
		}
	}
	if hasPort {
		if cause = r.parsePort(port); cause != "" {
			return cause, "write a number from 1 to 65535, or * for every port"
		}
	}
	return r.parseHost(host)
}

func isAddress(text string) bool {
	_, ok := parseAddr(text)
	return ok
}

func (r *Rule) parsePort(text string) string {
	if text == "*" {
		r.anyPort = true
		return ""
	}
	port, ok := parsePort(text)
	if !ok {
		return "it has the bad port " + strconv.Quote(shorten(text))
	}
	r.port = port
	return ""
}

// parsePort reads a port in its one plain spelling.
func parsePort(text string) (uint16, bool) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != text {
		return 0, false
	}
	return uint16(port), true
}

func (r *Rule) parseHost(host string) (cause, hint string) {
	if addr, length, ok := strings.Cut(host, "/"); ok {
		return r.parseNetwork(addr, length)
	}
	if addr, ok := parseAddr(host); ok {
		r.network = netip.PrefixFrom(addr, addr.BitLen())
		return "", ""
	}
	name := host
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		r.wildcard, name = true, rest
	} else if strings.HasPrefix(host, ".") {
		return "it begins with a dot", "write *" + host + " for the names below it"
	}
	if host == "*" {
		return "it would match every host", `name the hosts, or set default = "allow"`
	}
	canonical, cause := canonicalHost(name)
	if cause != "" {
		return cause, "write a host name, such as api.example.com or *.example.org"
	}
	if r.wildcard && len(canonical) > maxHost-2 {
		return "no name fits below it", ""
	}
	r.host = canonical
	return "", ""
}

func (r *Rule) parseNetwork(text, length string) (cause, hint string) {
	raw, err := netip.ParseAddr(text)
	bits, err2 := strconv.ParseUint(length, 10, 8)
	if err != nil || err2 != nil || raw.Zone() != "" || int(bits) > raw.BitLen() || strconv.FormatUint(bits, 10) != length {
		return "it is not a valid network", "write 10.0.0.0/8, 2001:db8::/32, or with a port [2001:db8::/32]:443"
	}
	if raw.Is4In6() {
		if bits < 96 {
			return "it mixes IPv4 and IPv6", "write the IPv4 network, as in 10.0.0.0/8"
		}
		raw, bits = raw.Unmap(), bits-96
	}
	network := netip.PrefixFrom(raw, int(bits))
	if masked := network.Masked(); masked != network {
		return "its address has bits beyond the length", "write " + masked.String() + ", or " + raw.String() + " for the one address"
	}
	r.network = network
	return "", ""
}

func parseMethods(text string) ([]string, string) {
	var methods []string
	for method := range strings.SplitSeq(text, ",") {
		method = upperASCII(method)
		for i := range len(method) {
			if c := method[i]; (c < 'A' || c > 'Z') && c != '-' {
				return nil, strconv.Quote(shorten(text)) + " is not a list of methods"
			}
		}
		if method == "" || len(method) > 32 {
			return nil, strconv.Quote(shorten(text)) + " is not a list of methods"
		}
		if method == "CONNECT" {
			return nil, "a CONNECT tunnel cannot be inspected"
		}
		methods = append(methods, method)
	}
	slices.Sort(methods)
	return slices.Compact(methods), ""
}

func upperASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c - ('a' - 'A')
		}
	}
	return string(b)
}

func presetName(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 40
}

// Preset gives the name of the preset that the rule stands for, or "".
func (r Rule) Preset() string { return r.preset }

// Equal reports whether both rules mean the same and come from the same preset.
func (r Rule) Equal(other Rule) bool { return r.From == other.From && r.String() == other.String() }

// String is the rule's canonical text: ParseRule of it gives the same rule.
func (r Rule) String() string {
	if r.preset != "" {
		return "preset:" + r.preset
	}
	var b strings.Builder
	if len(r.methods) > 0 {
		b.WriteString(strings.Join(r.methods, ",") + " ")
	}
	if r.protocol != "" {
		b.WriteString(r.protocol + "://")
	}
	b.WriteString(r.authority())
	switch {
	case r.anyPort:
		b.WriteString(":*")
	case r.port != 0:
		b.WriteString(":" + strconv.Itoa(int(r.port)))
	}
	return b.String() + r.path
}

// authority is the rule's host as its text has it, without the port.
func (r Rule) authority() string {
	if !r.network.IsValid() {
		if r.wildcard {
			return "*." + r.host
		}
		return r.host
	}
	text := r.network.String()
	if r.network.IsSingleIP() {
		text = r.network.Addr().String()
	}
	if r.network.Addr().Is6() && (r.port != 0 || r.anyPort || r.protocol != "") {
		text = "[" + text + "]"
	}
	return text
}

// ruleJSON is a rule in JSON.
type ruleJSON struct {
	Rule string `json:"rule"`
	From string `json:"from,omitempty"`
}

// MarshalJSON writes the canonical text, and the preset where there is one.
func (r Rule) MarshalJSON() ([]byte, error) { return json.Marshal(ruleJSON{r.String(), r.From}) }

// UnmarshalJSON reads what MarshalJSON writes, or the rule's text alone.
func (r *Rule) UnmarshalJSON(data []byte) error {
	var read ruleJSON
	if json.Unmarshal(data, &read.Rule) != nil {
		if err := json.Unmarshal(data, &read); err != nil {
			return fault.New(fault.Invalid, "cannot read a network rule: it is neither a text nor an object")
		}
	}
	parsed, err := ParseRule(read.Rule)
	if err != nil {
		return err
	}
	*r = parsed
	r.From = read.From
	return nil
}
