package redteam

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
)

func networkAttacks() []Attack {
	return []Attack{
		{
			name: "reach services of the host",
			try:  reachServices,
		},
		{
			name:    "reach the world",
			control: bare, full: "the control needs a network namespace",
			try: func(ctx context.Context, _ *world, p place) (outcome, error) {
				// Reserved for documentation (RFC 5737): no host is there.
				targets := []string{"tcp4", "192.0.2.1:80", "tcp4", "192.0.2.2:853", "udp4", "198.51.100.3:53", "tcp4", "203.0.113.4:443"}
				verb := "connect"
				if !p.inside() {
					verb = "addressed" // something answers there, in a namespace of its own
				}
				answers, err := p.probe(ctx, append([]string{verb}, targets...)...)
				return answered(answers), err
			},
		},
		{
			name:    "carry data out in DNS names",
			control: wide, full: "in the degraded tier there is no resolver at all",
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				const name = "stolen.redteam.invalid" // RFC 6761: reserved
				if !p.inside() {
					if got := w.litterbox(ctx, "allow", p.box, name); got.code != 0 {
						return outcome{}, fmt.Errorf("cannot allow the name: %s", got.said())
					}
				}
				answers, err := p.probe(ctx, "resolve", name)
				return answered(answers), err
			},
		},
	}
}

// answered returns the outcome of answers that must not be "ok".
func answered(answers map[string]string) outcome {
	n := 0
	for _, answer := range answers {
		if answer == "ok" {
			n++
		}
	}
	return outcome{escaped: n > 0, seen: fmt.Sprintf("%d of %d answer", n, len(answers))}
}

// reachServices tries one listener of each kind, used by nothing else.
func reachServices(ctx context.Context, w *world, p place) (outcome, error) {
	var visits atomic.Int64
	var targets []string
	for _, on := range [][2]string{
		{"tcp", "127.0.0.1:0"}, {"unix", filepath.Join(w.base, fmt.Sprintf("s%d", w.count))}, {"unix", "@" + filepath.Base(w.base) + fmt.Sprint(w.count)},
	} {
		listener, err := net.Listen(on[0], on[1])
		if err != nil {
			return outcome{}, err
		}
		defer listener.Close()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return // closed
				}
				visits.Add(1)
				_, _ = conn.Write([]byte("!"))
				_, _ = conn.Read(make([]byte, 1)) // the probe's, so that closing resets nothing
				_ = conn.Close()
			}
		}()
		targets = append(targets, on[0], listener.Addr().String())
	}
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return outcome{}, err
	}
	defer socket.Close()
	go func() {
		for buf := make([]byte, 1); ; {
			_, from, err := socket.ReadFrom(buf)
			if err != nil {
				return // closed
			}
			visits.Add(1)
			_, _ = socket.WriteTo(buf, from)
		}
	}()
	targets = append(targets, "udp", socket.LocalAddr().String())
	answers, err := p.probe(ctx, append([]string{"connect"}, targets...)...)
	got := answered(answers)
	got.escaped = got.escaped || visits.Load() > 0
	got.seen += fmt.Sprintf("; %d visits", visits.Load())
	return got, err
}
