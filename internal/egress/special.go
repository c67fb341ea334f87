package egress

import "net/netip"

// special is a range of addresses that is not the public internet. A name that
// resolves into one, or a connection straight to it, needs a rule for that very
// address: otherwise an allowed name whose owner points it at 127.0.0.1 would
// open this machine and its network.
type special struct {
	prefix string
	what   string
	single bool // only a rule for the single address opens it, no range does
}

// specials is the table, from the IANA special-purpose address registries
// (RFC 6890 and its updates) and the clouds' documentation. The first match
// counts, so single addresses stand before the ranges around them.
//
// To add one: a line here; a rule that allows it needs nothing else.
func specials() []special {
	return []special{
		{"169.254.169.254/32", "the metadata service of a cloud machine", true},
		{"169.254.170.2/32", "the credentials service of a container", true},
		{"169.254.170.23/32", "the credentials service of a container", true},
		{"100.100.100.200/32", "the metadata service of a cloud machine", true},
		{"192.0.0.192/32", "the metadata service of a cloud machine", true},
		{"168.63.129.16/32", "the host agent of a cloud machine", true},
		{"fd00:ec2::254/128", "the metadata service of a cloud machine", true},
		{"fd00:ec2::23/128", "the credentials service of a container", true},
		{"fd20:ce::254/128", "the metadata service of a cloud machine", true},
		{"0.0.0.0/8", "this machine", true},
		{"127.0.0.0/8", "loopback", false},
		{"10.0.0.0/8", "a private network", false},
		{"172.16.0.0/12", "a private network", false},
		{"192.168.0.0/16", "a private network", false},
		{"100.64.0.0/10", "a carrier's or overlay network", false},
		{"169.254.0.0/16", "link-local", false},
		{"192.0.0.0/24", "reserved for protocols", false},
		{"192.88.99.0/24", "a tunnel relay", false},
		{"198.18.0.0/15", "reserved for benchmarks, and for the names of sandboxes", false},
		{"224.0.0.0/4", "multicast", false},
		{"240.0.0.0/4", "reserved or broadcast", false},
		{"::/128", "this machine", true},
		{"::1/128", "loopback", false},
		{"::/96", "an IPv4 address in an old spelling", false},
		{"64:ff9b:1::/48", "a local translation network", false},
		{"100::/64", "discarded by routers", false},
		{"2001::/23", "a tunnel or reserved for protocols", false},
		{"2002::/16", "a tunnel", false},
		{"5f00::/16", "reserved for segment routing", false},
		{"fc00::/7", "a private network", false},
		{"fe80::/10", "link-local", false},
		{"fec0::/10", "a private network", false},
		{"ff00::/8", "multicast", false},
	}
}

// zone is a special range as it is compared.
type zone struct {
	prefix netip.Prefix
	what   string
	single bool
}

// zoneOf finds what special range addr lies in. An address that a NAT64 gateway
// translates (RFC 6052) is as special as the IPv4 address inside.
func zoneOf(addr netip.Addr) (zone, bool) {
	addr = addr.Unmap()
	if inner, ok := translated(addr); ok {
		found, special := zoneOf(inner)
		return zone{netip.PrefixFrom(addr, 128), found.what, true}, special
	}
	for _, s := range specials() {
		if prefix := netip.MustParsePrefix(s.prefix); prefix.Contains(addr) {
			return zone{prefix, s.what, s.single}, true
		}
	}
	return zone{}, false
}

// translated gives the IPv4 address inside 64:ff9b::/96.
func translated(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	if b[0] != 0 || b[1] != 0x64 || b[2] != 0xff || b[3] != 0x9b || [8]byte(b[4:12]) != [8]byte{} {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[12:16])), true
}
