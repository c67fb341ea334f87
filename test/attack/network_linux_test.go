package attack_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// networkAttacks look for anybody to talk to. There is no network at all.
func networkAttacks() []attack {
	return []attack{
		{
			Name:   "reach services of the host",
			Threat: "databases, agents and debuggers that trust whoever is local; abstract sockets have no file to hide",
			Control: func(w *world) {
				for target, answer := range w.outcomes(w.probeOutside(append([]string{"connect"}, w.services()...)...)) {
					if answer != "ok" {
						w.Errorf("outside, %s answers %s", target, answer)
					}
				}
			},
			Run: func(w *world) {
				services := w.services()
				w.sandbox()
				for target, answer := range w.outcomes(w.probeInside(append([]string{"connect"}, services...)...)) {
					w.wantNobody(target, answer)
				}
			},
		},
		{
			Name:   "reach the world",
			Threat: "the metadata service hands out credentials; a DNS query carries data out; QUIC, DoT, private ranges",
			Control: func(w *world) {
				for target, answer := range w.outcomes(w.probeOutside(append([]string{"bare", "addressed"}, world4()...)...)) {
					if answer != "ok" {
						w.Errorf("with somebody there, %s answers %s", target, answer)
					}
				}
			},
			Run: func(w *world) {
				w.sandbox()
				targets := append(world4(), "udp6", "[2001:4860:4860::8888]:53", "tcp6", "[2606:4700:4700::1111]:443", "tcp6", "[fd00:ec2::254]:80")
				for target, answer := range w.outcomes(w.probeInside(append([]string{"connect"}, targets...)...)) {
					w.wantNobody(target, answer)
				}
				if got := w.Inside(box, "getent", "hosts", "example.com"); got.Code == 0 {
					w.Errorf("a name resolves inside: %s", got.Stdout)
				}
				if got := w.Inside(box, "/bin/sh", "-c", "sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '"); got.Stdout != "lo\n" {
					w.Errorf("interfaces inside: %q, want lo alone", got.Stdout)
				}
			},
		},
	}
}

// world4 are addresses that mean something on many machines.
func world4() []string {
	return []string{
		"tcp4", "169.254.169.254:80", "udp4", "8.8.8.8:53", "tcp4", "1.1.1.1:853", "udp4", "1.0.0.2:443",
		"tcp4", "10.0.0.3:22", "tcp4", "172.17.0.4:2375", "tcp4", "192.168.1.5:80",
	}
}

// services starts one of each kind on the host and returns how to reach them.
func (w *world) services() []string {
	w.Helper()
	var targets []string
	// The paths are tried both where they are and in what the sandbox shares
	// with the host by name.
	short, err := os.MkdirTemp("", "lb-")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(short) })
	for _, service := range []struct{ network, address string }{
		{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}, {"tcp4", "0.0.0.0:0"}, {"unix", "@" + filepath.Base(short)}, {"unix", filepath.Join(short, "agent.sock")},
	} {
		listener, err := net.Listen(service.network, service.address)
		if err != nil && strings.HasPrefix(service.network, "tcp6") {
			continue // a host without IPv6
		}
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte("!"))
				w.Cleanup(func() { _ = conn.Close() })
			}
		}()
		targets = append(targets, service.network, strings.Replace(listener.Addr().String(), "0.0.0.0", "127.0.0.1", 1))
	}
	return targets
}

// wantNobody accepts what the kernel says of itself, and nothing that needed
// somebody: neither an answer nor a datagram that went out and was lost.
func (w *world) wantNobody(target, answer string) {
	w.Helper()
	switch answer {
	case "ENETUNREACH", "ECONNREFUSED", "ENOENT", "EADDRNOTAVAIL", "EHOSTUNREACH":
	default:
		w.Errorf("inside, %s answers %s", target, answer)
	}
}
