package attacks_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// inner returns addresses behind the machine's door: its own, its network's,
// and the metadata service, with servers at them.
func inner(t *testing.T, a *target) []netip.Addr {
	t.Helper()
	var all []netip.Addr
	for _, text := range []string{"127.0.0.1", "::1", world.Machine4, world.Machine6} {
		listener, err := net.Listen("tcp", net.JoinHostPort(text, innerPort))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go world.Accept(listener, a.web)
		all = append(all, netip.MustParseAddr(text))
	}
	for _, text := range []string{world.Metadata, world.Private} {
		go world.Accept(outside.Listen(t, net.JoinHostPort(text, innerPort)), a.web)
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

const innerPort = "80"

// addressAttacks reach for the machine and its neighbours.
func addressAttacks() []attack {
	return []attack{
		{
			Name: "the machine and its network",
			Set: func(t *testing.T, h *program.Host) scene {
				a := &target{}
				s := scene{Arrived: a.arrived, Open: true}
				for _, addr := range inner(t, a) {
					s.Tries = append(s.Tries, run("tcp", addr.String(), innerPort, "GET / HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n"))
				}
				for _, name := range []string{
					"localhost", "127.1", "2130706433", "0x7f000001", "0", "0.0.0.0", "::", "127.9.9.9", "::ffff:127.0.0.1",
					"2852039166", "0xa9fea9fe", "::ffff:" + world.Metadata, "169.16689662", "0251.0376.0251.0376", "10.6488071",
				} {
					if name == "127.9.9.9" { // nothing listens there; with 0.0.0.0 something would
						continue
					}
					s.Tries = append(s.Tries, run("tcp", name, innerPort, "GET / HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n"))
				}
				// Names that lead inside: allowed, but their addresses are not.
				for i, addr := range []string{"127.0.0.1", "::1", "0.0.0.0", world.Machine4, world.Machine6, world.Metadata, world.Private, "::ffff:127.0.0.1"} {
					name := fmt.Sprintf("inward%d.rebind.example", i)
					outside.Names.Set(name, netip.MustParseAddr(addr).Unmap())
					s.Tries = append(s.Tries, "curl -sS -m 10 http://"+name+"/")
				}
				return s
			},
		},
	}
}

// A name is allowed while it leads to the internet, and then its owner lets it
// lead to the machine.
func TestRebinding(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	public := &target{}
	host := outside.Host("turncoat.example")
	host.Serve(t, 81, public.web)
	private := &target{}
	machine, err := net.Listen("tcp", net.JoinHostPort(world.Machine4, "81"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = machine.Close() })
	go world.Accept(machine, private.web)
	go world.Accept(outside.Listen(t, world.Private+":81"), private.web)
	h.Must("create", "box")
	h.Must("allow", "box", "*.turncoat.example:81", "turncoat.example:81")
	fetch := func(name string) program.Result {
		return h.Inside("box", "curl", "-sS", "-m", "20", "http://"+name+":81/")
	}
	if got := fetch("turncoat.example"); got.Code != 0 || public.arrived() == 0 {
		t.Fatalf("the name leads to the internet: %s", got.Stderr)
	}
	for i, addr := range []string{world.Machine4, world.Private} {
		name := fmt.Sprintf("turn%d.turncoat.example", i)
		outside.Names.Set(name, netip.MustParseAddr(addr))
		if got := h.Shell("curl -sS -m 20 http://" + name + ":81/"); got.Code != 0 || private.n.Swap(0) == 0 {
			t.Fatalf("control: from outside %s is out of reach: %s", name, got.Stderr)
		}
		if got := fetch(name); got.Code == 0 || private.arrived() != 0 {
			t.Errorf("%s led to %s: %s", name, addr, got.Stdout)
		}
		// Beside a public address, the private one is left out.
		outside.Names.Set("half-"+name, netip.MustParseAddr(addr), host.V4)
		if got := fetch("half-" + name); got.Code != 0 || private.arrived() != 0 {
			t.Errorf("with a public address beside %s: %d, %d private visitors", addr, got.Code, private.arrived())
		}
	}
	// Only a rule for that very address opens it.
	h.Must("allow", "box", world.Private+":81")
	if got := fetch("turn1.turncoat.example"); got.Code != 0 || private.arrived() == 0 {
		t.Errorf("with a rule for its address it stays closed: %s\n%s", got.Stderr, h.Must("network", "box"))
	}
}
