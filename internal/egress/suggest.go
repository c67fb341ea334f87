package egress

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// siblings is how many names below one domain make a wildcard worth offering.
const siblings = 3

// Suggestion is a rule that would have allowed something that was denied.
type Suggestion struct {
	Rule    string   `json:"rule"`
	Why     string   `json:"why"`
	Covers  []string `json:"covers"` // what was denied and would be allowed
	Warning string   `json:"warning,omitempty"`
}

// Suggest returns the smallest list of rules, as far as single rules go, that
// would have allowed what seen says was denied. It leaves out what a deny rule
// forbids, what the policy allows by now, and what no rule can allow (a server
// name that did not agree, the metadata services of clouds). Three or more
// names directly below one domain become one wildcard, unless shared says that
// strangers have names there too, as below github.io.
func Suggest(p *Policy, seen []Observation, shared func(domain string) bool) []Suggestion {
	found := map[string]*Suggestion{}
	for _, o := range seen {
		if o.Verdict != Denied {
			continue
		}
		rule, what, warning := p.suggestOne(o)
		if rule == "" {
			continue
		}
		if found[rule] == nil {
			found[rule] = &Suggestion{Rule: rule, Why: "was denied", Warning: warning}
		}
		if !slices.Contains(found[rule].Covers, what) {
			found[rule].Covers = append(found[rule].Covers, what)
		}
	}
	group(found, shared)
	var list []Suggestion
	for _, rule := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[rule].Covers)
		list = append(list, *found[rule])
	}
	return list
}

// suggestOne gives the rule for one observation.
func (p *Policy) suggestOne(o Observation) (rule, what, warning string) {
	t := Target{Host: o.Host, Addr: o.Addr, Port: o.Port}
	if o.Protocol == DNS {
		t.Port = 443
		if _, isAddr := parseAddr(o.Host); isAddr || p.DecideName(o.Host).Allowed {
			return "", "", "" // a reverse look-up, or allowed by now
		}
		return p.remedy(t), o.Host, ""
	}
	what = t.authority()
	if verdict := p.Decide(t); verdict.Allowed {
		if o.Protocol != TCP {
			return "", "", "" // the name inside did not agree, or the request was limited on purpose
		}
		if t.Protocol = TCP; p.Decide(t).Allowed {
			return "", "", ""
		}
		return p.remedy(t), what, "what it carries is not inspected"
	}
	found, special := zoneOf(t.Addr)
	if !t.Addr.IsValid() || !special {
		return p.remedy(t), what, ""
	}
	if found.single || found.what == "" || reserved(t.Addr) {
		return "", "", ""
	}
	if t.Host != "" && !p.Decide(Target{Host: t.Host, Port: t.Port}).Allowed {
		return p.remedy(Target{Host: t.Host, Port: t.Port}), what, ""
	}
	t.Host = ""
	return p.remedy(t), what, "the address is " + found.what
}

// group replaces rules for siblings with a wildcard, and drops the rules it covers.
func group(found map[string]*Suggestion, shared func(domain string) bool) {
	below := map[string][]string{} // wildcard rule to the rules it replaces
	for text := range found {
		rule, err := ParseRule(text)
		if err != nil || rule.host == "" || rule.wildcard || rule.protocol != "" {
			continue
		}
		_, parent, ok := strings.Cut(rule.host, ".")
		if !ok || !strings.Contains(parent, ".") || shared(parent) {
			continue
		}
		rule.host, rule.wildcard = parent, true
		below[rule.String()] = append(below[rule.String()], text)
	}
	// Parents first: what a shorter wildcard covers needs no second one.
	shortest := slices.SortedFunc(maps.Keys(below), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for _, wildcard := range shortest {
		texts := slices.DeleteFunc(below[wildcard], func(text string) bool { return found[text] == nil })
		if len(texts) < siblings {
			continue
		}
		rule, err := ParseRule(wildcard)
		if err != nil {
			continue
		}
		one := &Suggestion{
			Rule:    wildcard,
			Why:     strconv.Itoa(len(texts)) + " names below " + rule.host + " were denied",
			Warning: "it also allows every other name below " + rule.host,
		}
		for text, covered := range found {
			other, err := ParseRule(text)
			if err == nil && other.port == rule.port && other.protocol == "" && rule.matchesHost(other.host) {
				one.Covers = append(one.Covers, covered.Covers...)
				delete(found, text)
			}
		}
		found[wildcard] = one
	}
}
