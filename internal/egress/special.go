package egress

import "net/netip"

// special is a range of addresses that is not the public internet. A name that
// resolves into one, or a connection straight to it, needs a rule for that very
// address: otherwise an allowed name whose owner points it at 127.0.0.1 would
// open this machine and its network.
type special struct {
	prefix netip.Prefix
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
		{v4(32, 169, 254, 169, 254), "the metadata service of a cloud machine", true},
		{v4(32, 169, 254, 170, 2), "the credentials service of a container", true},
		{v4(32, 169, 254, 170, 23), "the credentials service of a container", true},
		{v4(32, 100, 100, 100, 200), "the metadata service of a cloud machine", true},
		{v4(32, 192, 0, 0, 192), "the metadata service of a cloud machine", true},
		{v4(32, 168, 63, 129, 16), "the host agent of a cloud machine", true},
		{v6(128, 0xfd00, 0xec2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x254), "the metadata service of a cloud machine", true},
		{v6(128, 0xfd00, 0xec2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x23), "the credentials service of a container", true},
		{v6(128, 0xfd20, 0xce, 0x0, 0x0, 0x0, 0x0, 0x0, 0x254), "the metadata service of a cloud machine", true},
		{v4(8, 0, 0, 0, 0), "this machine", true},
		{v4(8, 127, 0, 0, 0), "loopback", false},
		{v4(8, 10, 0, 0, 0), "a private network", false},
		{v4(12, 172, 16, 0, 0), "a private network", false},
		{v4(16, 192, 168, 0, 0), "a private network", false},
		{v4(10, 100, 64, 0, 0), "a carrier's or overlay network", false},
		{v4(16, 169, 254, 0, 0), "link-local", false},
		{v4(24, 192, 0, 0, 0), "reserved for protocols", false},
		{v4(24, 192, 88, 99, 0), "a tunnel relay", false},
		{v4(15, 198, 18, 0, 0), "reserved for benchmarks, and for the names of sandboxes", false},
		{v4(4, 224, 0, 0, 0), "multicast", false},
		{v4(4, 240, 0, 0, 0), "reserved or broadcast", false},
		{v6(128), "this machine", true},
		{v6(128, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x1), "loopback", false},
		{v6(96), "an IPv4 address in an old spelling", false},
		{v6(96, 0x0, 0x0, 0x0, 0x0, 0xffff), "an IPv4 address in an old spelling", false},
		{v6(48, 0x64, 0xff9b, 0x1), "a local translation network", false},
		{v6(64, 0x100), "discarded by routers", false},
		{v6(64, 0x100, 0x0, 0x0, 0x1), "discarded by routers", false},
		{v6(23, 0x2001), "a tunnel or reserved for protocols", false},
		{v6(16, 0x2002), "a tunnel", false},
		{v6(16, 0x5f00), "reserved for segment routing", false},
		{v6(7, 0xfc00), "a private network", false},
		{v6(10, 0xfe80), "link-local", false},
		{v6(10, 0xfec0), "a private network", false},
		{v6(8, 0xff00), "multicast", false},
	}
}

// v4 and v6 write a range without parsing text: the table is made for every
// verdict on an address.
func v4(bits int, a, b, c, d byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits)
}

func v6(bits int, groups ...uint16) netip.Prefix {
	var addr [16]byte
	for i, group := range groups {
		addr[2*i], addr[2*i+1] = byte(group>>8), byte(group)
	}
	return netip.PrefixFrom(netip.AddrFrom16(addr), bits)
}

// zoneOf finds the special range that addr lies in. An address that stands for
// an IPv4 address is as special as that one.
func zoneOf(addr netip.Addr) (special, bool) {
	addr = addr.Unmap()
	for _, inner := range embedded(addr) {
		if found, ok := zoneOf(inner); ok {
			return special{netip.PrefixFrom(addr, 128), found.what, true}, true
		}
	}
	for _, s := range specials() {
		if s.prefix.Contains(addr) {
			return s, true
		}
	}
	return special{}, false
}
