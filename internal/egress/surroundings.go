package egress

import "net/netip"

// Surroundings are the addresses in public ranges that are not the public
// internet, because they are this machine's or lie right beside it.
type Surroundings struct {
	Own       []netip.Prefix // this machine's, most of them single addresses
	Networks  []netip.Prefix // whose hosts an interface reaches without a router, and the routers
	Broadcast []netip.Addr   // of those networks: every host there gets what is sent
}

// locate records in t where its address lies, seen from this machine. An
// address that embeds another lies where the inner one does.
func (p *Proxy) locate(t *Target) {
	t.Own, t.Link, t.Broadcast = false, netip.Prefix{}, false
	if !t.Addr.IsValid() {
		return
	}
	around := p.o.Surroundings()
	around.place(t)
}

func (s *Surroundings) place(t *Target) {
	s.locate(t, t.Addr)
	for _, inner := range embedded(t.Addr) {
		s.locate(t, inner)
	}
}

func (s *Surroundings) locate(t *Target, addr netip.Addr) {
	for _, own := range s.Own {
		t.Own = t.Own || own.Contains(addr)
	}
	for _, broadcast := range s.Broadcast {
		t.Broadcast = t.Broadcast || broadcast == addr
	}
	for _, network := range s.Networks {
		// The narrowest one counts.
		if network.Contains(addr) && (!t.Link.IsValid() || network.Bits() > t.Link.Bits()) {
			t.Link = network
		}
	}
}

// Beside reports whether addr lies in a network of this machine.
func (s Surroundings) Beside(addr netip.Addr) bool {
	t := Target{}
	s.locate(&t, addr.Unmap())
	return t.Link.IsValid()
}

// ground is the reason that an address does not count as the public internet.
type ground struct {
	what   string
	bits   int  // only a rule no wider than this opens it
	single bool // only a rule for the single address does
	never  bool // no rule does
}

// ground is false for the public internet.
func (t Target) ground() (ground, bool) {
	if !t.Addr.IsValid() {
		return ground{}, false
	}
	found, special := zoneOf(t.Addr)
	switch {
	case t.Broadcast:
		return ground{what: "every host of a network of this machine", never: true}, true
	case t.Own:
		return ground{what: "this machine", single: true}, true
	case special:
		return ground{what: found.what, bits: found.prefix.Bits(), single: found.single}, true
	case t.Link.IsValid():
		inside := t.Link.Contains(t.Addr)
		return ground{what: "the network " + t.Link.String() + " of this machine", bits: t.Link.Bits(), single: !inside}, true
	}
	return ground{}, false
}

// opens reports whether a rule for network is meant for an address on this ground.
func (g ground) opens(network netip.Prefix) bool {
	return !g.never && network.Bits() >= g.bits && (!g.single || network.IsSingleIP())
}

// add notes one address of an interface with its network.
func (s *Surroundings) add(own netip.Addr, network netip.Prefix) {
	own = own.Unmap().WithZone("")
	s.Own = append(s.Own, netip.PrefixFrom(own, own.BitLen()))
	s.beside(network)
}

// beside notes a network of an interface. One that lies in a special range is
// private anyway, and the rules for that range count there.
func (s *Surroundings) beside(network netip.Prefix) {
	if network.Bits() <= 0 {
		return // the whole internet: a link whose only other end is the way there
	}
	network = network.Masked()
	if network.Addr().Is4() && network.Bits() <= 30 {
		last := network.Addr().As4()
		for bit := network.Bits(); bit < 32; bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
		}
		// The first address is the older spelling, which Linux before 5.14 and
		// others take too (RFC 1122, section 3.3.6).
		s.Broadcast = append(s.Broadcast, netip.AddrFrom4(last), network.Addr())
	}
	if zone, special := zoneOf(network.Addr()); special && zone.prefix.Bits() <= network.Bits() {
		return
	}
	for _, known := range s.Networks {
		if known == network {
			return
		}
	}
	s.Networks = append(s.Networks, network)
}
