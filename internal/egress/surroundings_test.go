package egress_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// Every address of an interface is this machine's, and its network is beside
// it, unless it lies in a range that is private anyway.
func TestSurroundings(t *testing.T) {
	s := egress.WatchSurroundings()()
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range interfaces {
		network, ok := one.(*net.IPNet)
		if !ok {
			continue
		}
		addr, _ := netip.AddrFromSlice(network.IP)
		addr = addr.Unmap()
		if !slices.ContainsFunc(s.Own, func(own netip.Prefix) bool { return own.Contains(addr) }) {
			t.Errorf("%s is not known as this machine's: %v", addr, s.Own)
		}
		inside := slices.ContainsFunc(s.Networks, func(n netip.Prefix) bool { return n.Contains(addr) })
		if !egress.Special(addr) && !inside {
			t.Errorf("the network of %s is not known: %v", addr, s.Networks)
		}
	}
	for _, network := range s.Networks {
		if network.Bits() == 0 || network != network.Masked() {
			t.Errorf("%s counts as a network of this machine", network)
		}
	}
}
