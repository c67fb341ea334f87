package attacks_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// protocolAttacks speak something other than plain TCP to a host.
func protocolAttacks() []attack {
	return []attack{
		{
			Name: "other ways to open a connection",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				h := outside.Host("ways.example")
				h.Serve(t, 9000, a.web)
				return scene{Arrived: a.arrived, Tries: []string{
					run("tcp", h.V4.String(), "9000", "knock"), run("tcp", h.V6.String(), "9000", "knock"),
					run("mptcp", h.V4.String(), "9000", "knock"), run("mptcp", h.V6.String(), "9000", "knock"),
					run("fastopen", h.V4.String(), "9000", "knock"),
				}}
			},
		},
		{
			Name: "datagrams",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				h := outside.Host("quic.example")
				s := scene{Arrived: a.arrived, Allow: []string{h.Name}}
				for _, port := range []string{"443", "80", "3478", "5353", "123", "9000"} {
					for _, address := range []string{h.V4.String(), h.V6.String()} {
						go a.datagrams(outside.ListenPacket(t, net.JoinHostPort(address, port)))
						s.Tries = append(s.Tries, run("udp", address, port))
					}
				}
				// By its name, which may be looked up, over TCP.
				s.Tries = append(s.Tries, run("udp", h.Name, "443"), run("udp", h.Name, "9000"))
				return s
			},
		},
		{
			Name: "datagrams in pieces",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				h, friend := outside.Host("pieces.example"), outside.Host("pieces-friend.example")
				// A rule about another host has the kernel's redirect in place.
				s := scene{Arrived: a.arrived, Allow: []string{h.Name, "udp://" + friend.Name + ":9000"}}
				for _, address := range []string{h.V4.String(), h.V6.String()} {
					go a.datagrams(outside.ListenPacket(t, net.JoinHostPort(address, "9000")))
					for _, how := range []string{"corked", "large", "segments", "many"} {
						s.Tries = append(s.Tries, run("pieces", address, "9000", how))
					}
				}
				return s
			},
		},
		{
			Name: "raw packets",
			Set: func(t *testing.T, _ *program.Host) scene {
				h := outside.Host("raw.example")
				a := &target{}
				go a.datagrams(outside.ListenPacket(t, h.V4.String()+":9000"))
				packets := func() int64 { return a.arrived() + outside.Counter(t, "Icmp", "InEchos") }
				s := scene{Arrived: packets, Tries: []string{run("icmp", h.V4.String(), "SOCK_RAW"), run("raw", h.V4.String(), "9000")}}
				if _, err := world.Find("ping"); err == nil {
					s.Tries = append(s.Tries, "ping -c 1 -W 2 "+h.V4.String())
				}
				return s
			},
		},
		{
			Name:  "encrypted resolvers",
			Needs: []string{"dig"},
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				for _, address := range []string{"8.8.8.8:853", "8.8.8.8:443", "1.1.1.1:443", "[2001:4860:4860::8888]:853"} {
					go world.Accept(outside.Listen(t, address), a.secure(t, "dns.example"))
				}
				h := outside.Host("doh.example")
				h.Serve(t, 443, a.secure(t, h.Name))
				go a.datagrams(outside.ListenPacket(t, "1.1.1.1:853")) // DNS over QUIC
				return scene{Arrived: a.arrived, Patient: true, Tries: []string{
					"dig +tls +tries=1 +timeout=3 @8.8.8.8 x.example", "dig +https +tries=1 +timeout=3 @8.8.8.8 x.example",
					"curl -sSk -m 5 --doh-insecure --doh-url https://1.1.1.1/dns-query http://x.example/",
					"curl -sSk -m 5 --doh-insecure --doh-url https://doh.example/dns-query http://x.example/",
					run("tls", "2001:4860:4860::8888", "853", "-", "x"), run("udp", "1.1.1.1", "853"),
				}}
			},
		},
		{
			Name: "local sockets",
			Set: func(t *testing.T, h *program.Host) scene {
				var visits atomic.Int64
				dir, err := os.MkdirTemp("", "lb-") // short: a socket's path has 108 bytes
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
				s := scene{Arrived: visits.Load}
				for _, name := range []string{"@litterbox-" + strconv.Itoa(os.Getpid()), filepath.Join(dir, "agent.sock")} {
					listener, err := net.Listen("unix", name)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = listener.Close() })
					go world.Accept(listener, func(conn net.Conn) {
						visits.Add(1)
						_, _ = conn.Write([]byte("agent"))
					})
					s.Tries = append(s.Tries, run("unix", name))
				}
				return s
			},
		},
	}
}
