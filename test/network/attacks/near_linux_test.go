package attacks_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

const plainRequest = `GET / HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n`

// nearAttacks reach for neighbours of the machine that have public addresses,
// and for addresses translated by a gateway.
func nearAttacks() []attack {
	return []attack{
		{
			Name: "neighbours with public addresses",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				s := scene{Arrived: a.arrived, Open: true}
				for _, addr := range []string{world.Router4, world.Router6} {
					go world.Accept(outside.Listen(t, net.JoinHostPort(addr, "8081")), a.web)
					go a.datagrams(outside.ListenPacket(t, net.JoinHostPort(addr, "8081")))
					s.Tries = append(s.Tries, run("tcp", addr, "8081", plainRequest), run("udp", addr, "8081"))
				}
				outside.Names.Set("router.example", netip.MustParseAddr(world.Router4))
				outside.Names.Set("router6.example", netip.MustParseAddr(world.Router6))
				s.Allow = []string{"router.example:8081", "router6.example:8081", "udp://router.example:8081"}
				s.Tries = append(s.Tries, "curl -sS -m 10 http://router.example:8081/", "curl -sS -m 10 http://router6.example:8081/", run("udp", "router.example", "8081"))
				go a.datagrams(outside.ListenPacket(t, "0.0.0.0:8082"))
				s.Tries = append(s.Tries, run("broadcast", "203.0.113.255", "8082"))
				return s
			},
		},
		{
			Name: "neighbours under the default deny",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				s := scene{Arrived: a.arrived}
				for i, addr := range []string{world.Router4, world.Router6} {
					name := []string{"near4.example", "near6.example"}[i]
					go world.Accept(outside.Listen(t, net.JoinHostPort(addr, "8083")), a.web)
					outside.Names.Set(name, netip.MustParseAddr(addr))
					s.Allow = append(s.Allow, name+":8083")
					s.Tries = append(s.Tries, "curl -sS -m 10 http://"+name+":8083/")
				}
				return s
			},
		},
		{
			Name: "translated addresses",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				h := outside.Host("translated.example")
				s := scene{Arrived: a.arrived, Open: true, Deny: []string{h.V4.String()}}
				for i, inner := range []string{world.Private, world.Metadata, world.Router4, world.Machine4, h.V4.String()} {
					addr := world.Translated(inner)
					go world.Accept(outside.Listen(t, net.JoinHostPort(addr, "8084")), a.web)
					name := []string{"a", "b", "c", "d", "e"}[i] + ".translated.example"
					outside.Names.Set(name, netip.MustParseAddr(addr))
					s.Tries = append(s.Tries, run("tcp", addr, "8084", plainRequest), "curl -sS -m 10 http://"+name+":8084/")
				}
				return s
			},
		},
	}
}

// hiddenAttacks go to a host that is denied by its name where everything else
// is allowed.
func hiddenAttacks() []attack {
	const end = `\r\n\r\n`
	return []attack{{
		Name: "denied hosts by their addresses",
		Set: func(t *testing.T, _ *program.Host) scene {
			a := &target{}
			h := outside.Host("denied.example")
			other := outside.Host("elsewhere.example") // where nothing listens
			h.Serve(t, 80, a.web)
			h.Serve(t, 443, a.secure(t, h.Name, other.Name))
			h.Serve(t, 8443, a.web)
			s := scene{Arrived: a.arrived, Open: true, Deny: []string{h.Name}}
			for _, addr := range []string{h.V4.String(), h.V6.String()} {
				s.Tries = append(s.Tries,
					run("tls", addr, "443", "-", `GET / HTTP/1.1\r\nHost: denied.example`+end),
					run("tls", addr, "443", other.Name, `GET / HTTP/1.1\r\nHost: denied.example`+end),
					run("tls", addr, "443", h.Name, `GET / HTTP/1.1\r\nHost: denied.example`+end),
					run("tcp", addr, "80", `GET / HTTP/1.1\r\nHost: `+other.Name+end),
					run("tcp", addr, "80", `GET / HTTP/1.1\r\nHost: `+net.JoinHostPort(addr, "80")+end),
					run("tcp", addr, "8443", plainRequest),
				)
			}
			s.Tries = append(s.Tries, "curl -sSk https://"+h.V4.String()+"/", "curl -sSk --resolve elsewhere.example:443:"+h.V4.String()+" https://elsewhere.example/")
			return s
		},
	}}
}

// A network counts from the moment when the machine joins it.
func TestNetworkThatIsJoined(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	visits := &target{}
	host := outside.Host("joined.example")
	host.Serve(t, 8085, visits.web)
	h.Must("create", "box")
	h.Must("allow", "box", host.Name+":8085")
	fetch := func() program.Result {
		return h.Inside("box", "curl", "-4", "-sS", "-m", "20", "http://"+host.Name+":8085/")
	}
	if got := fetch(); got.Code != 0 || visits.arrived() == 0 {
		t.Fatalf("before: %s", got.Stderr)
	}
	cable, err := netlink.LinkByName("cable")
	if err != nil {
		t.Fatal(err)
	}
	beside := []*netlink.Route{
		{LinkIndex: cable.Attrs().Index, Dst: netlink.NewIPNet(net.IP(host.V4.AsSlice())), Scope: netlink.SCOPE_LINK},
		{LinkIndex: cable.Attrs().Index, Dst: netlink.NewIPNet(net.IP(host.V6.AsSlice()))},
	}
	for _, route := range beside {
		if err := netlink.RouteAdd(route); err != nil {
			t.Fatal(err)
		}
	}
	before := visits.arrived()
	if got := h.Shell("curl -4 -sS -m 20 http://" + host.Name + ":8085/"); got.Code != 0 || visits.arrived() == before {
		t.Fatalf("control: from outside the neighbour is out of reach: %s", got.Stderr)
	}
	before = visits.arrived()
	if got := fetch(); got.Code == 0 || visits.arrived() != before {
		t.Errorf("beside the machine it was reached: %s\n%s", got.Stdout, h.Must("network", "box"))
	}
	for _, route := range beside {
		if err := netlink.RouteDel(route); err != nil {
			t.Fatal(err)
		}
	}
	if got := fetch(); got.Code != 0 || visits.arrived() == before {
		t.Errorf("afterwards: %s\n%s", got.Stderr, h.Must("network", "box"))
	}
}
