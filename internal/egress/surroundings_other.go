//go:build !linux

package egress

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// WatchSurroundings returns a function that returns the networks around this
// machine, at most a second old. It is safe for concurrent use.
func WatchSurroundings() func() Surroundings {
	var mu sync.Mutex
	var known Surroundings
	var until time.Time
	return func() Surroundings {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.After(until) {
			known, until = readSurroundings(), now.Add(time.Second)
		}
		return known
	}
}

func readSurroundings() (s Surroundings) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return s // the special ranges are refused all the same
	}
	for _, one := range all {
		if network, ok := one.(*net.IPNet); ok {
			bits, _ := network.Mask.Size()
			if addr, ok := netip.AddrFromSlice(network.IP); ok {
				addr = addr.Unmap()
				s.add(addr, netip.PrefixFrom(addr, min(bits, addr.BitLen())))
			}
		}
	}
	return s
}
