package egress

import "net/netip"

// embedded returns the IPv4 addresses that an IPv6 address stands for: where a
// gateway or a tunnel of the network translates it, they are reached instead.
// There are several where it is unclear which one is meant.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() || addr.Is4In6() {
		return nil
	}
	b := addr.As16()
	zero := func(from, to int) bool {
		for _, c := range b[from:to] {
			if c != 0 {
				return false
			}
		}
		return true
	}
	at := func(places ...int) netip.Addr {
		return netip.AddrFrom4([4]byte{b[places[0]], b[places[1]], b[places[2]], b[places[3]]})
	}
	wellKnown := b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b
	switch {
	case wellKnown && zero(4, 12): // NAT64 (RFC 6052)
		return []netip.Addr{at(12, 13, 14, 15)}
	case wellKnown && b[4] == 0 && b[5] == 1: // NAT64 of a network (RFC 8215): its prefix has one of four lengths (RFC 6052, section 2.2)
		var all []netip.Addr
		for _, places := range [][]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}} {
			if one := at(places...); one.As4()[0] != 0 { // part of the prefix, with this length
				all = append(all, one)
			}
		}
		return all
	case b[0] == 0x20 && b[1] == 0x02: // 6to4 (RFC 3056)
		return []netip.Addr{at(2, 3, 4, 5)}
	case b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0: // Teredo (RFC 4380): the server, and the client with its bits turned
		client := [4]byte{^b[12], ^b[13], ^b[14], ^b[15]}
		return []netip.Addr{at(4, 5, 6, 7), netip.AddrFrom4(client)}
	case zero(0, 12) && !zero(12, 15): // IPv4-compatible (RFC 4291, section 2.5.5.1); :: and ::1 are not
		return []netip.Addr{at(12, 13, 14, 15)}
	case zero(0, 8) && b[8] == 0xff && b[9] == 0xff && b[10] == 0 && b[11] == 0: // IPv4-translated (RFC 2765)
		return []netip.Addr{at(12, 13, 14, 15)}
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP (RFC 5214), in any network
		return []netip.Addr{at(12, 13, 14, 15)}
	}
	return nil
}
