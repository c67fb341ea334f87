package egress

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Explanation is the verdict on a destination that was not dialled, with what
// a connection to it would go through.
type Explanation struct {
	Host string     `json:"host,omitempty"`
	Addr netip.Addr `json:"addr,omitzero"`
	Port uint16     `json:"port"`
	Decision
	Resolves bool     `json:"resolves"`           // the name gets an answer inside
	Inspect  bool     `json:"inspect"`            // TLS or HTTP is expected and must agree
	Requests []string `json:"requests,omitempty"` // the rules that look at single requests
	Notes    []string `json:"notes,omitempty"`
	Hint     string   `json:"hint,omitempty"` // the rule that would allow it
}

// ParseDestination reads HOST, HOST:PORT, an address, or [v6]:PORT, and gives
// the canonical host; without a port it is 443. Its errors have kind
// fault.Invalid.
func ParseDestination(text string) (host string, port uint16, err error) {
	if addr, ok := parseAddr(text); ok {
		return addr.String(), 443, nil
	}
	host, port, ok := splitAuthority(text)
	if !ok {
		return "", 0, fault.New(fault.Invalid, "cannot read the destination %q", shorten(text)).
			WithHint("write a host with an optional port, as in example.com:443 or [2001:db8::1]:443")
	}
	if port == 0 {
		port = 443
	}
	if addr, ok := parseAddr(host); ok {
		return addr.String(), port, nil
	}
	host, err = CanonicalHost(host)
	return host, port, err
}

// Explain gives the verdict on TCP to host, a name or an address, without a
// look-up: the addresses of a name are judged only when a program connects.
func Explain(p *Policy, host string, port uint16, around Surroundings) Explanation {
	t := Target{Host: host, Port: port}
	e := Explanation{Host: host, Port: port}
	if addr, ok := parseAddr(host); ok {
		e.Host, e.Addr = "", addr
		t.Host, t.Addr = "", addr
		around.place(&t)
	}
	e.Decision = p.Decide(t)
	if p == nil {
		return e
	}
	if t.Host != "" {
		name := p.DecideName(t.Host)
		e.Resolves = name.Allowed
		if !name.Allowed {
			e.note("inside, the name does not exist: %s", name.Why)
		} else if _, cause := canonicalHost(host); cause == "" {
			e.note("if it resolves to a private address, of this machine or its network, that address needs a rule too")
		}
	}
	if !e.Allowed {
		e.Hint = p.remedy(t)
		return e
	}
	t.Protocol = TCP
	e.Inspect = !p.Decide(t).Allowed
	if e.Inspect {
		e.note("TLS or HTTP is expected on this port, and its server name or Host has to agree")
	}
	for _, protocol := range []string{HTTP, HTTPS} {
		t.Protocol = protocol
		if p.perRequest(t) {
			e.Requests = append(e.Requests, p.requestRules(t)...)
		}
	}
	if len(e.Requests) > 0 {
		e.note("single requests are judged by these rules, inside TLS too: %s", strings.Join(e.Requests, "; "))
	}
	return e
}

func (e *Explanation) note(format string, args ...any) {
	e.Notes = append(e.Notes, fault.New(fault.Invalid, format, args...).Text)
}

// requestRules lists the rules that look at single requests to t.
func (p *Policy) requestRules(t Target) []string {
	var found []string
	for i, list := range [][]Rule{p.Allow, p.Deny} {
		for _, rule := range list {
			if rule.constrained() && rule.protocol == t.Protocol && rule.matchesHost(t.Host) {
				found = append(found, []string{"allow ", "deny "}[i]+rule.named())
			}
		}
	}
	return found
}

// remedy returns the rule that would allow t. It is empty when a deny rule
// forbids t or no rule can allow it.
func (p *Policy) remedy(t Target) string {
	canonical, cause := t.canonical()
	if cause != "" {
		return ""
	}
	text := canonical.authority()
	if canonical.Host != "" && webPort(canonical.Port) {
		text = canonical.Host
	}
	if canonical.Protocol == UDP {
		text = "udp://" + canonical.authority()
	}
	rule, err := ParseRule(text)
	if err != nil {
		return ""
	}
	try := *p
	try.Allow = append(append([]Rule(nil), p.Allow...), rule)
	if canonical.Protocol == TCP && !try.Decide(canonical).Allowed {
		text = "tcp://" + canonical.Host + ":" + strconv.Itoa(int(canonical.Port))
		if rule, err = ParseRule(text); err != nil {
			return ""
		}
		try.Allow[len(try.Allow)-1] = rule
	}
	if !try.Decide(canonical).Allowed {
		return ""
	}
	return rule.String()
}
