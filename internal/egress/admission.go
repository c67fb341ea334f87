package egress

// admission is something that the policy has admitted: a connection, a request
// inside one, an exchange of datagrams. The table of all admissions is checked
// against each new revision, and bytes are counted there while they flow.
// Proxy.mu guards all fields once it is admitted.
type admission struct {
	still   func(*Policy) bool // asked when there is a new revision
	abort   func()
	moved   func() (in, out int64) // nil when its bytes are counted elsewhere
	seen    Observation            // what its bytes are reported as
	in, out int64                  // reported so far
}

// admit enters a into the table, or updates what it was admitted for.
func (p *Proxy) admit(a *admission, still func(*Policy) bool, seen Observation) {
	seen.Count = 0
	p.mu.Lock()
	defer p.mu.Unlock()
	a.still, a.seen = still, seen
	p.live[a] = struct{}{}
}

// forget removes a from the table, and reports the bytes not reported before.
// It may be called for an admission that was never admitted, and twice.
func (p *Proxy) forget(a *admission) {
	p.mu.Lock()
	_, known := p.live[a]
	delete(p.live, a)
	seen, worth := a.news()
	p.mu.Unlock()
	if known && worth {
		p.o.Observe(seen)
	}
}

// news returns what flowed since the last report; worth is false if nothing did.
func (a *admission) news() (seen Observation, worth bool) {
	if a.moved == nil {
		return seen, false
	}
	in, out := a.moved()
	seen = a.seen
	seen.BytesIn, seen.BytesOut = in-a.in, out-a.out
	a.in, a.out = in, out
	return seen, seen.BytesIn != 0 || seen.BytesOut != 0
}

// Report observes the bytes that live connections have moved since the last
// report, so that long ones are seen before they end.
func (p *Proxy) Report() {
	p.mu.Lock()
	var all []Observation
	for a := range p.live {
		if seen, worth := a.news(); worth {
			all = append(all, seen)
		}
	}
	p.mu.Unlock()
	for _, seen := range all {
		p.o.Observe(seen)
	}
}

// Recheck ends what the changed policy no longer admits. It is called after a
// new revision is put in force.
func (p *Proxy) Recheck() {
	policy := p.o.Policy()
	p.mu.Lock()
	var gone []func()
	for a := range p.live {
		if !a.still(policy) {
			gone = append(gone, a.abort)
		}
	}
	p.mu.Unlock()
	for _, abort := range gone {
		abort()
	}
}

// decides is the usual question to a new revision.
func decides(t Target) func(*Policy) bool {
	return func(policy *Policy) bool { return policy.Decide(t).Allowed }
}
