package egress

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The defaults of a policy.
const (
	Deny  = "deny"
	Allow = "allow"
)

// Policy is what may leave a sandbox. The zero value lets nothing out.
type Policy struct {
	Default  string `json:"default"` // Deny, or Allow; anything else counts as Deny
	Allow    []Rule `json:"allow"`
	Deny     []Rule `json:"deny"`
	Revision int    `json:"revision"`
}

// Target is something that a sandbox tries to reach.
type Target struct {
	Host string // the name it asked for; empty when it went straight to an address
	// Addr is the address it went to, or, with Host, one that the name
	// resolved to; invalid when the name is not resolved yet.
	Addr netip.Addr
	Own  bool // Addr is one of this machine's own addresses
	// Link is the network of this machine in which Addr lies, among neighbours
	// and routers; invalid for none.
	Link      netip.Prefix
	Broadcast bool // Addr means every host of such a network
	Port      uint16
	// Protocol is what the connection was seen to carry: TCP (not looked at, or
	// not understood), HTTP, HTTPS (TLS), UDP. Empty is the question before the
	// first byte: may anything flow at all?
	Protocol string
	Method   string // of an HTTP request; empty while unknown
	Path     string // as the request has it; empty while unknown
}

// Decision is a verdict with its reason.
type Decision struct {
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule,omitempty"` // the rule that decided; empty when none did
	Why     string `json:"why"`
}

// Expand returns a policy in which every preset rule is replaced by the rules
// that expand returns for it. Decide does not follow presets: one left in
// Allow allows nothing, one left in Deny denies everything.
func (p *Policy) Expand(expand func(name string) ([]string, error)) (*Policy, error) {
	expanded := *p
	for _, list := range []*[]Rule{&expanded.Allow, &expanded.Deny} {
		var rules []Rule
		for _, rule := range *list {
			if rule.preset == "" {
				rules = append(rules, rule)
				continue
			}
			texts, err := expand(rule.preset)
			if err != nil {
				return nil, err
			}
			for _, text := range texts {
				one, err := ParseRule(text)
				if err == nil && one.preset != "" {
					err = fault.New(fault.Invalid, "cannot use a preset inside a preset")
				}
				if err != nil {
					return nil, fault.Wrap("", err, "cannot expand %q", rule.String())
				}
				one.From = rule.String()
				rules = append(rules, one)
			}
		}
		*list = rules
	}
	return &expanded, nil
}

// Decide gives the verdict on t. It is pure, and it judges the canonical form
// of t, so that a different spelling never changes the verdict. Deny rules win;
// what no rule allows is denied unless Default is Allow; and an address outside
// the public internet needs its own rule even where the name that led to it is
// allowed, whatever Default says.
func (p *Policy) Decide(t Target) Decision {
	if p == nil {
		return Decision{Why: "there is no policy"}
	}
	t, cause := t.canonical()
	if cause != "" {
		return Decision{Why: cause}
	}
	for _, rule := range p.Deny {
		if !rule.denies(t) {
			continue
		}
		why := "denied by the rule " + rule.named()
		if rule.constrained() && (t.Protocol == TCP || t.Method == "") {
			why += ", which looks at requests that cannot be seen here"
		}
		return Decision{Rule: rule.named(), Why: why}
	}
	if t.Host == "" {
		return p.decideAddr(t)
	}
	verdict := p.decideHost(t)
	if !verdict.Allowed || !t.Addr.IsValid() {
		return verdict
	}
	if why := p.closed(t); why != "" {
		return Decision{Rule: verdict.Rule, Why: why}
	}
	return verdict
}

// DecideName reports whether a name may be resolved at all: whether some port of
// it could be reached over some protocol.
func (p *Policy) DecideName(host string) Decision {
	if p == nil {
		return Decision{Why: "there is no policy"}
	}
	name, cause := canonicalHost(host)
	if cause != "" {
		return Decision{Why: "not a host name: " + cause}
	}
	for _, rule := range p.Deny {
		if rule.preset != "" || rule.protocol == "" && rule.everyPort() && rule.matchesHost(name) {
			return Decision{Rule: rule.named(), Why: "denied by the rule " + rule.named()}
		}
	}
	for _, rule := range p.Allow {
		if rule.matchesHost(name) {
			return Decision{Allowed: true, Rule: rule.named(), Why: "allowed by the rule " + rule.named()}
		}
	}
	return p.fallback("no rule allows the name")
}

func (p *Policy) fallback(why string) Decision {
	if p.Default == Allow {
		return Decision{Allowed: true, Why: "allowed by default"}
	}
	return Decision{Why: why}
}

func (p *Policy) decideHost(t Target) Decision {
	var near *Rule
	for i, rule := range p.Allow {
		if !rule.matchesHost(t.Host) {
			continue
		}
		if rule.matchesPort(t.Port) && rule.admits(t) {
			return Decision{Allowed: true, Rule: rule.named(), Why: "allowed by the rule " + rule.named()}
		}
		near = &p.Allow[i]
	}
	if p.Default == Allow {
		return p.openly(t)
	}
	if near == nil {
		return Decision{Why: "no rule allows the host"}
	}
	return Decision{Rule: near.named(), Why: near.lacks(t)}
}

func (p *Policy) decideAddr(t Target) Decision {
	if rule := p.ruleFor(t); rule != nil {
		return Decision{Allowed: true, Rule: rule.named(), Why: "allowed by the rule " + rule.named()}
	}
	if found, ok := t.ground(); ok {
		no := ") and no rule allows that address"
		if found.never {
			no = "), which no rule opens"
		}
		return Decision{Why: t.Addr.String() + " is not of the public internet (" + found.what + no}
	}
	if p.Default == Allow {
		return p.openly(t)
	}
	return Decision{Why: "no rule allows the address"}
}

// openly is the verdict where everything is allowed by default. On the web's
// ports, deny rules about names can be kept only when connections are looked at.
func (p *Policy) openly(t Target) Decision {
	if t.Protocol == UDP && len(p.Deny) > 0 && webPort(t.Port) {
		return Decision{Why: "behind this port a denied host could hide; allow udp://" + t.authority() + " if that is intended"}
	}
	if t.Host == "" && t.Protocol != "" && t.Protocol != TCP && webPort(t.Port) && p.deniesNames() {
		return Decision{Why: "it names no host, by SNI or Host, and a denied one could hide behind the address; allow tcp://" + t.authority() + " if that is intended"}
	}
	if t.Protocol == TCP && len(p.Deny) > 0 && webPort(t.Port) {
		return Decision{Why: "it is neither TLS nor HTTP, and behind this port a denied host could hide; allow tcp://" + t.authority() + " if that is intended"}
	}
	return Decision{Allowed: true, Why: "allowed by default"}
}

// deniesNames reports whether some deny rule is about a name.
func (p *Policy) deniesNames() bool {
	return slices.ContainsFunc(p.Deny, func(rule Rule) bool { return rule.host != "" || rule.preset != "" })
}

// byName reports whether a connection that went straight to t.Addr counts as
// one to the host that it then asks for: nothing speaks for the address itself.
func (p *Policy) byName(t Target) bool {
	return t.Host == "" && p.Default == Allow && p.ruleFor(t) == nil
}

// closed says why an allowed name may not be reached at t.Addr; empty when it may.
func (p *Policy) closed(t Target) string {
	found, ok := t.ground()
	if !ok || p.ruleFor(t) != nil {
		return ""
	}
	if found.never {
		return "the name resolves to " + t.Addr.String() + " (" + found.what + "), which no rule opens"
	}
	also := t.Addr.String() + " with port " + strconv.Itoa(int(t.Port))
	if t.Protocol == UDP {
		also = "udp://" + netip.AddrPortFrom(t.Addr, t.Port).String()
	}
	return "the name resolves to " + t.Addr.String() + " (" + found.what + "); allow " + also + " too if that is intended"
}

// ruleFor finds the allow rule about addresses that admits t.Addr. Only a rule
// that is meant for it opens a special address: a network inside the same
// special range or the same network of this machine, and the single address for
// this machine's own addresses and the metadata services.
func (p *Policy) ruleFor(t Target) *Rule {
	found, _ := t.ground()
	for i, rule := range p.Allow {
		if !rule.network.IsValid() || !rule.network.Contains(t.Addr) || !rule.matchesPort(t.Port) {
			continue
		}
		// With a name, the rule for the name speaks about protocol and path.
		if t.Host == "" && !rule.admits(t) || t.Host != "" && (rule.protocol == UDP) != (t.Protocol == UDP) {
			continue
		}
		if !found.opens(rule.network) {
			continue
		}
		return &p.Allow[i]
	}
	return nil
}

// canonical returns the one form of t that is judged.
func (t Target) canonical() (Target, string) {
	if t.Addr.Zone() != "" {
		return t, "an address with a zone is of one machine only"
	}
	t.Addr = t.Addr.Unmap()
	if t.Host == "" && !t.Addr.IsValid() {
		return t, "it names neither a host nor an address"
	}
	if t.Host != "" {
		// A name that is an address is judged as the address.
		if addr, ok := parseAddr(t.Host); ok {
			if t.Addr.IsValid() && t.Addr != addr {
				return t, "it names two addresses"
			}
			t.Host, t.Addr = "", addr
		} else {
			host, cause := canonicalHost(t.Host)
			if cause != "" {
				return t, "not a host name: " + cause
			}
			t.Host = host
		}
	}
	if t.Port == 0 {
		return t, "there is no port 0"
	}
	if !slices.Contains([]string{"", TCP, UDP, HTTP, HTTPS}, t.Protocol) {
		return t, "the protocol is unknown"
	}
	return t, ""
}

// name makes t a target by host name instead of by address.
func (t *Target) name(host string) {
	t.Host, t.Addr, t.Own, t.Link, t.Broadcast = host, netip.Addr{}, false, netip.Prefix{}, false
}

// asked returns t as it was before the first byte.
func (t Target) asked() Target {
	t.Protocol, t.Method, t.Path = "", "", ""
	return t
}

func (t Target) authority() string {
	if t.Host != "" {
		return t.Host + ":" + strconv.Itoa(int(t.Port))
	}
	return netip.AddrPortFrom(t.Addr, t.Port).String()
}

// webPort reports whether only TLS and HTTP are expected on port.
func webPort(port uint16) bool { return port == 443 || port == 80 }

// reaches reports whether an address that a name led to, or one already
// admitted, may be dialled, whatever is asked there. A deny rule that looks at
// requests counts in full: which requests will use a connection is not known.
func (p *Policy) reaches(t Target) Decision {
	t.Method, t.Path = "", ""
	t, cause := t.canonical()
	if cause != "" {
		return Decision{Why: cause}
	}
	bare := t
	bare.Host = ""
	for _, rule := range p.Deny {
		if rule.denies(bare) {
			return Decision{Rule: rule.named(), Why: "denied by the rule " + rule.named()}
		}
	}
	if why := p.closed(t); t.Host != "" && why != "" {
		return Decision{Why: why}
	}
	return Decision{Allowed: true}
}

// perRequest reports whether a rule about single requests applies to t.
func (p *Policy) perRequest(t Target) bool {
	about := func(rule Rule) bool {
		byAddr := t.Host == "" && rule.network.IsValid() && rule.network.Contains(t.Addr)
		return rule.constrained() && rule.protocol == t.Protocol && (byAddr || rule.matchesHost(t.Host))
	}
	for _, rule := range p.Allow {
		if about(rule) && rule.matchesPort(t.Port) {
			return true
		}
	}
	for _, rule := range p.Deny {
		if about(rule) && (rule.everyPort() || rule.port == t.Port) {
			return true
		}
	}
	return false
}

// Inspects reports whether some rule looks at single requests inside TLS, so that
// the sandbox must trust an authority of its own.
func (p *Policy) Inspects() bool {
	looks := func(rule Rule) bool { return rule.constrained() && rule.protocol == HTTPS }
	return slices.ContainsFunc(p.Allow, looks) || slices.ContainsFunc(p.Deny, looks)
}
