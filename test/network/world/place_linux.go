package world

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// place is a network namespace, held by a thread that lives as long as the
// process. Sockets and processes that the thread makes belong to it.
type place struct{ work chan func() }

func newPlace() (*place, error) {
	p := &place{work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never given back: the thread is the namespace's
		ready <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range p.work {
			f()
		}
	}()
	return p, <-ready
}

// do calls f in the namespace.
func (p *place) do(f func() error) error {
	done := make(chan error)
	p.work <- func() { done <- f() }
	return <-done
}

// thread returns the kernel's number of the thread that holds the namespace.
func (p *place) thread() (tid int, err error) {
	err = p.do(func() error { tid = unix.Gettid(); return nil })
	return tid, err
}

// cable connects this process's namespace and the place, and gives both their
// addresses and routes.
func cable(p *place) error {
	tid, err := p.thread()
	if err != nil {
		return err
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "cable"}, PeerName: "cable", PeerNamespace: netlink.NsPid(tid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("cannot lay a cable: %w", err)
	}
	if err := end([]string{Machine4 + "/24", Machine6 + "/64"}, nil); err != nil {
		return err
	}
	for _, router := range []string{Router4, Router6} {
		gateway := net.ParseIP(router)
		if err := netlink.RouteAdd(&netlink.Route{Gw: gateway, Dst: anywhere(gateway)}); err != nil {
			return fmt.Errorf("cannot add a route through %s: %w", router, err)
		}
	}
	return p.do(func() error {
		// The servers of the world run as ordinary users on ordinary ports;
		// IPv6 treats an address as local only if an interface has it.
		for name, value := range map[string]string{"ipv4/ip_unprivileged_port_start": "0", "ipv6/ip_nonlocal_bind": "1"} {
			if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
				return err
			}
		}
		local := []string{hosts4, hosts6, nat64, Resolver}
		return end([]string{Router4 + "/24", Router6 + "/64"}, append(local, Others()...))
	})
}

func anywhere(gateway net.IP) *net.IPNet {
	if gateway.To4() != nil {
		return &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	}
	return &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
}

// end sets one end of the cable up, in the namespace of the calling thread,
// and makes the addresses and networks of local its own.
func end(addresses, local []string) error {
	// A handle of the calling thread: the package's own belongs to another.
	handle, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer handle.Close()
	for _, name := range []string{"lo", "cable"} {
		link, err := handle.LinkByName(name)
		if err != nil {
			return err
		}
		if err := handle.LinkSetUp(link); err != nil {
			return err
		}
		if name == "lo" {
			continue
		}
		for _, text := range addresses {
			address, err := netlink.ParseAddr(text)
			if err != nil {
				return err
			}
			address.Flags = unix.IFA_F_NODAD
			if err := handle.AddrAdd(link, address); err != nil {
				return fmt.Errorf("cannot add %s: %w", text, err)
			}
		}
	}
	for _, text := range local {
		route := &netlink.Route{LinkIndex: 1, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: unix.RT_TABLE_LOCAL}
		if _, route.Dst, err = net.ParseCIDR(text); err != nil {
			ip := net.ParseIP(text)
			if four := ip.To4(); four != nil {
				ip = four
			}
			route.Dst = &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))}
		}
		if err := handle.RouteAdd(route); err != nil {
			return fmt.Errorf("cannot make %s local: %w", text, err)
		}
	}
	return nil
}

// Counter returns one of the world's counters of packets, from /proc/net/snmp.
func (w *World) Counter(t testing.TB, group, name string) (value int64) {
	t.Helper()
	var data []byte
	err := w.place.do(func() (err error) {
		data, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		switch at := slices.Index(names, name); {
		case fields[0] != group+":":
		case names == nil:
			names = fields
		case at >= 0:
			if value, err = strconv.ParseInt(fields[at], 10, 64); err == nil {
				return value
			}
		}
	}
	t.Fatalf("the kernel counts no %s of %s", name, group)
	return 0
}
