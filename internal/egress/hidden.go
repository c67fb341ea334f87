package egress

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Bounds of the search for a denied host behind an address.
const (
	maxHidden  = 64 // names
	hiddenTime = 5 * time.Second
)

// hidden finds a denied host behind the address of t, where a program goes
// without a name and nothing is looked into. Everything is allowed there by
// default, and a denied host would be reached by its address. A name that cannot
// be resolved leads nowhere, and the names below a wildcard are not known.
func (p *Proxy) hidden(ctx context.Context, policy *Policy, t Target) (Decision, bool) {
	if !policy.byName(t) {
		return Decision{}, false
	}
	var rules []Rule
	for _, rule := range policy.Deny {
		named := t
		named.name(rule.host)
		if rule.host != "" && !rule.wildcard && rule.denies(named) && len(rules) < maxHidden {
			rules = append(rules, rule)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, hiddenTime)
	defer cancel()
	found := make(chan *Rule, len(rules))
	for _, rule := range rules {
		go func() {
			addrs, _ := p.lookups.find(ctx, rule.host)
			if slices.ContainsFunc(addrs, func(addr netip.Addr) bool { return addr.Unmap() == t.Addr }) {
				found <- &rule
			} else {
				found <- nil
			}
		}()
	}
	for range rules {
		if rule := <-found; rule != nil {
			return Decision{Rule: rule.named(), Why: "the host of the rule " + rule.named() + " stands behind the address; allow " + t.authority() + " if that is intended"}, true
		}
	}
	return Decision{}, false
}
