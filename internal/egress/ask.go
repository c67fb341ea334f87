package egress

import (
	"context"
	"net/netip"
)

// Question asks a human about a destination that no rule allows.
type Question struct {
	Host     string     `json:"host,omitempty"`
	Addr     netip.Addr `json:"addr,omitzero"`
	Port     uint16     `json:"port"`
	Protocol string     `json:"protocol"` // TCP or UDP
	Process  string     `json:"process,omitempty"`
	Why      string     `json:"why"`
	Rule     string     `json:"rule"` // what would allow it
}

// ask waits for the answer about t, which verdict refuses, and reports whether to
// decide again. It never asks about what a rule denies, nor about what only a
// typed rule should open: this machine and the metadata services of clouds.
func (p *Proxy) ask(ctx context.Context, policy *Policy, t Target, who string, verdict Decision) bool {
	if p.o.Ask == nil {
		return false
	}
	if found, ok := t.ground(); ok && (found.single || found.never || reserved(t.Addr)) {
		return false
	}
	rule := policy.remedy(t)
	if rule == "" {
		return false
	}
	q := Question{Host: t.Host, Addr: t.Addr, Port: t.Port, Protocol: TCP, Process: printable(who), Why: verdict.Why, Rule: rule}
	if t.Protocol == UDP {
		q.Protocol = UDP
	}
	return p.o.Ask(ctx, q)
}
