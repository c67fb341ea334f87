package attack_test

import (
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
)

// networkAttacks look for anything to talk to. No rule allows anything: a
// sandbox is born without network.
func networkAttacks() []attack {
	return []attack{
		{
			Name: "reach services of the host",
			Control: func(w *world) {
				services := w.services()
				for target, answer := range w.outcomes(w.probeOutside(append([]string{"connect"}, services.targets...)...)) {
					if answer != "ok" {
						w.Errorf("outside, %s answers %s", target, answer)
					}
				}
				if services.visits.Load() == 0 {
					w.Error("the services do not notice who comes")
				}
			},
			Run: func(w *world) {
				services := w.services()
				w.sandbox()
				for target, answer := range w.outcomes(w.probeInside(append([]string{"connect"}, services.targets...)...)) {
					w.wantNobody(target, answer)
				}
				if n := services.visits.Load(); n > 0 {
					w.Errorf("services of the host were reached %d times", n)
				}
			},
		},
		{
			Name: "reach the world",
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

// services are listeners of the host.
type services struct {
	targets []string      // how to reach them, for the probe
	visits  *atomic.Int64 // visitors, whether answered or not
}

// services starts one of each kind, on every address of this machine.
func (w *world) services() services {
	w.Helper()
	dir, err := os.MkdirTemp("", "lb-") // short: a socket's path has 108 bytes
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := services{visits: &atomic.Int64{}}
	w.listen(&s, "unix", "@"+filepath.Base(dir))
	w.listen(&s, "unix", filepath.Join(dir, "agent.sock"))
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		w.Fatal(err)
	}
	for _, address := range addresses {
		// Link-local addresses need a zone, and mean nothing elsewhere.
		if of, ok := address.(*net.IPNet); ok && !of.IP.IsLinkLocalUnicast() {
			w.listen(&s, "tcp", net.JoinHostPort(of.IP.String(), "0"))
			w.listen(&s, "udp", net.JoinHostPort(of.IP.String(), "0"))
		}
	}
	return s
}

func (w *world) listen(s *services, network, address string) {
	w.Helper()
	if network == "udp" {
		socket, err := net.ListenPacket(network, address)
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = socket.Close() })
		go func() {
			for buf := make([]byte, 1); ; {
				_, from, err := socket.ReadFrom(buf)
				if err != nil {
					return // closed
				}
				s.visits.Add(1)
				_, _ = socket.WriteTo(buf, from)
			}
		}()
		s.targets = append(s.targets, network, socket.LocalAddr().String())
		return
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			s.visits.Add(1)
			_, _ = conn.Write([]byte("!"))
			_, _ = conn.Read(make([]byte, 1)) // the probe's, so that closing resets nothing
			_ = conn.Close()
		}
	}()
	s.targets = append(s.targets, network, listener.Addr().String())
}

// wantNobody fails if something answered. Anything less does not by itself
// prove what left the sandbox: the guest accepts connections to judge them,
// and resets those that no rule allows. The interfaces show that nothing could
// leave, and the listeners show that nothing arrived.
func (w *world) wantNobody(target, answer string) {
	w.Helper()
	if answer == "ok" {
		w.Errorf("inside, %s answers", target)
	}
}
