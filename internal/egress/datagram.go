package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Bounds of the datagrams of one sandbox.
const (
	maxDatagram     = 65535
	datagramsQueued = 64 // of one exchange while its host is being found
)

// Back takes datagrams back into the sandbox. It is called from many
// goroutines, keeps nothing that it is given, and may lose datagrams.
type Back interface {
	// Reply gives the program at source the answer of destination.
	Reply(source, destination netip.AddrPort, payload []byte)
	// Refuse tells the program at source that destination does not listen.
	Refuse(source, destination netip.AddrPort)
}

// datagrams are the exchanges of a sandbox.
type datagrams struct {
	mu        sync.Mutex
	exchanges map[endpoints]*exchange
	buffers   sync.Pool // of *[maxDatagram]byte
}

type endpoints struct{ source, destination netip.AddrPort }

// exchange is what one program has with one host over UDP: the datagrams of one
// source and one destination.
type exchange struct {
	p     *Proxy
	ends  endpoints
	back  Back
	who   string
	t     Target
	queue chan []byte
	life  admission
	quit  context.CancelFunc

	in, out atomic.Int64
	last    atomic.Pointer[time.Time] // when something was sent or came
}

// moved notes that something was sent or came. Unlike a number, a time.Time
// keeps the monotonic clock.
func (x *exchange) moved() {
	now := time.Now()
	x.last.Store(&now)
}

// Datagram carries one datagram that the program named by who sent from source
// to destination, or refuses it at once. Answers go back until the exchange
// was silent for Options.DatagramTimeout, or ctx ends. It does not wait for
// the network: datagrams that come faster than they go are lost.
func (p *Proxy) Datagram(ctx context.Context, source, destination netip.AddrPort, who string, payload []byte, back Back) {
	ends := endpoints{source, destination}
	p.datagrams.mu.Lock()
	x := p.datagrams.exchanges[ends]
	p.datagrams.mu.Unlock()
	if x == nil {
		if x = p.exchange(ctx, ends, who, back); x == nil {
			return
		}
	}
	select {
	case x.queue <- payload:
	default: // lost, as on any network
	}
}

// exchange begins one, or refuses it.
func (p *Proxy) exchange(ctx context.Context, ends endpoints, who string, back Back) *exchange {
	x := &exchange{p: p, ends: ends, back: back, who: who, queue: make(chan []byte, datagramsQueued)}
	x.t = Target{Port: ends.destination.Port(), Addr: ends.destination.Addr().Unmap(), Protocol: UDP}
	if host, ok := p.o.Names.Host(x.t.Addr); ok {
		x.t.Host, x.t.Addr = host, netip.Addr{}
	}
	if x.t.Host == "" {
		if p.o.Names.Contains(x.t.Addr) {
			x.refuse(Decision{Why: "no name was looked up for this address"})
			return nil
		}
		p.locate(&x.t)
	}
	verdict := p.o.Policy().Decide(x.t)
	if !verdict.Allowed && p.o.Ask == nil {
		x.refuse(verdict)
		return nil
	}
	ctx, x.quit = context.WithCancel(ctx)
	p.datagrams.mu.Lock()
	full := len(p.datagrams.exchanges) >= p.o.MaxExchanges
	if !full {
		p.datagrams.exchanges[ends] = x
	}
	p.datagrams.mu.Unlock()
	if full {
		x.quit()
		x.refuse(Decision{Why: fmt.Sprintf("the sandbox already exchanges datagrams with %d others", p.o.MaxExchanges)})
		return nil
	}
	go x.run(ctx, verdict)
	return x
}

// refuse says why and answers as a closed port would, in this order, so that
// the reason is there when the answer comes.
func (x *exchange) refuse(verdict Decision) {
	x.observe(Denied, verdict.Rule, verdict.Why)
	x.back.Refuse(x.ends.source, x.ends.destination)
}

func (x *exchange) observe(verdict, rule, why string) {
	x.p.o.Observe(x.observation(verdict, rule, why))
}

func (x *exchange) observation(verdict, rule, why string) Observation {
	return Observation{Host: x.t.Host, Addr: x.t.Addr, Port: x.t.Port, Protocol: UDP, Process: x.who, Verdict: verdict, Rule: rule, Why: why, Count: 1}
}

func (x *exchange) run(ctx context.Context, verdict Decision) {
	defer x.end()
	policy := x.p.o.Policy()
	if !verdict.Allowed && x.p.ask(ctx, policy, x.t, x.who, verdict) {
		policy = x.p.o.Policy()
		verdict = policy.Decide(x.t)
	}
	if !verdict.Allowed {
		x.leave()
		x.refuse(verdict)
		return
	}
	if denied, ok := x.p.hidden(ctx, policy, x.t); ok {
		x.leave()
		x.refuse(denied)
		return
	}
	limit, cancel := context.WithTimeout(ctx, x.p.o.DialTimeout)
	addrs, reachable, err := x.p.addresses(limit, x.t, policy.Decide)
	cancel()
	if !reachable.Allowed {
		x.refuse(reachable)
		return
	}
	conn, err := x.open(ctx, addrs, err)
	if err != nil {
		x.observe(Failed, verdict.Rule, "cannot send: "+err.Error())
		x.back.Refuse(x.ends.source, x.ends.destination)
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	x.life.abort = func() {
		x.leave()
		x.back.Refuse(x.ends.source, x.ends.destination)
	}
	x.life.moved = func() (in, out int64) { return x.in.Load(), x.out.Load() }
	x.p.admit(&x.life, decides(x.t), x.observation(Allowed, verdict.Rule, verdict.Why))
	x.observe(Allowed, verdict.Rule, verdict.Why)
	x.moved()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		x.send(ctx, conn)
	}()
	x.receive(conn)
	x.quit()
	<-sent
}

// open makes a socket to the first address that this machine has a way to. It
// is connected, so that no other host can answer.
func (x *exchange) open(ctx context.Context, addrs []netip.Addr, err error) (*net.UDPConn, error) {
	for _, addr := range addrs {
		var conn net.Conn
		if conn, err = x.p.o.Dial(ctx, "udp", netip.AddrPortFrom(addr, x.t.Port).String()); err != nil {
			continue
		}
		udp, ok := conn.(*net.UDPConn)
		if !ok {
			return nil, errors.Join(errors.New("it is not a UDP socket"), conn.Close())
		}
		x.t.Addr = addr
		x.p.locate(&x.t)
		return udp, nil
	}
	return nil, err
}

func (x *exchange) send(ctx context.Context, conn *net.UDPConn) {
	for {
		select {
		case <-ctx.Done():
			return
		case payload := <-x.queue:
			x.out.Add(int64(len(payload))) // before an answer to it can be counted
			n, err := conn.Write(payload)
			x.out.Add(int64(n - len(payload)))
			x.moved()
			if errors.Is(err, syscall.ECONNREFUSED) {
				x.back.Refuse(x.ends.source, x.ends.destination)
			}
		}
	}
}

// receive passes answers on until nothing moves anymore. It holds a buffer
// only while there is something to read.
func (x *exchange) receive(conn *net.UDPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	for {
		quiet := time.Since(*x.last.Load())
		if quiet >= x.p.o.DatagramTimeout {
			return
		}
		if conn.SetReadDeadline(time.Now().Add(x.p.o.DatagramTimeout-quiet)) != nil {
			return // closed
		}
		switch err := x.pass(raw); {
		case err == nil:
			x.moved()
		case errors.Is(err, os.ErrDeadlineExceeded):
		case errors.Is(err, syscall.ECONNREFUSED):
			x.back.Refuse(x.ends.source, x.ends.destination)
		default:
			return
		}
	}
}

func (x *exchange) pass(raw syscall.RawConn) error {
	var failed error
	err := raw.Read(func(fd uintptr) bool {
		buffer := x.p.datagrams.buffers.Get().(*[maxDatagram]byte)
		defer x.p.datagrams.buffers.Put(buffer)
		n, err := syscall.Read(int(fd), buffer[:])
		if err == syscall.EAGAIN || err == syscall.EINTR {
			return false // wait, and be called again
		}
		if failed = os.NewSyscallError("read", err); err == nil {
			x.in.Add(int64(n))
			x.back.Reply(x.ends.source, x.ends.destination, buffer[:n])
		}
		return true
	})
	return errors.Join(err, failed)
}

// leave makes room; datagrams that come later start over.
func (x *exchange) leave() {
	x.quit()
	x.p.datagrams.mu.Lock()
	defer x.p.datagrams.mu.Unlock()
	if x.p.datagrams.exchanges[x.ends] == x {
		delete(x.p.datagrams.exchanges, x.ends)
	}
}

func (x *exchange) end() {
	x.leave()
	x.p.forget(&x.life)
}
