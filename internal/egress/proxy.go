package egress

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Options is what a proxy works with. Policy and Names are required.
type Options struct {
	// Policy gives the policy in force, for every connection and every HTTP
	// request; a new revision therefore counts at once.
	Policy func() *Policy
	Names  *Names // shared with the resolver
	// Dial connects to an address literal; a net.Dialer by default. It is the
	// only way out.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// LookupHost resolves a canonical name; the host's own resolver by default.
	LookupHost func(ctx context.Context, host string) ([]netip.Addr, error)
	// Surroundings returns the networks around this machine, for every verdict
	// on an address; by default what the kernel knows of interfaces and routes.
	Surroundings func() Surroundings
	Upstream     *Upstream         // the proxy of this machine; nil if there is none
	Observe      func(Observation) // may be nil; called from many goroutines
	Inspector    Inspector         // may be nil: then rules on requests inside TLS, or in HTTP/2, allow nothing
	MaxConns     int               // of the sandbox at once, and of sessions to hosts; 4096 by default
	// MaxExchanges is how many exchanges over UDP there may be at once; each
	// has a socket. 512 by default.
	MaxExchanges int
	// Ask may wait for a human who decides about a destination that no rule
	// allows; true means that the policy has an answer now. May be nil; called
	// from many goroutines.
	Ask func(context.Context, Question) bool

	HeadTimeout     time.Duration // for a complete head; 10 s by default
	DialTimeout     time.Duration // 30 s by default
	HalfOpenTimeout time.Duration // silence after one side has ended; 5 min by default
	DatagramTimeout time.Duration // silence of an exchange over UDP; 2 min by default (RFC 4787, section 4.3)
}

// headBudget bounds the memory of all unfinished heads.
const headBudget = 8 << 20

// Proxy carries the connections of one sandbox to where they may go. It is safe
// for concurrent use.
type Proxy struct {
	o       Options
	heads   budget
	buffers sync.Pool // of *[chunk]byte
	lookups lookups
	count   atomic.Int64 // of the sandbox's connections
	carried atomic.Int64 // of those to hosts that sessions dialled

	datagrams datagrams

	mu   sync.Mutex
	live map[*admission]struct{}
}

// New makes a proxy.
func New(o Options) *Proxy {
	if o.Dial == nil {
		dialer := &net.Dialer{}
		o.Dial = dialer.DialContext
	}
	if o.LookupHost == nil {
		o.LookupHost = func(ctx context.Context, host string) ([]netip.Addr, error) {
			// The dot keeps the host's search domains out: they would turn the
			// name decided on into another.
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
		}
	}
	if o.Surroundings == nil {
		o.Surroundings = WatchSurroundings()
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 4096
	}
	if o.MaxExchanges <= 0 {
		o.MaxExchanges = 512
	}
	orDefault(&o.HeadTimeout, 10*time.Second)
	orDefault(&o.DialTimeout, 30*time.Second)
	orDefault(&o.HalfOpenTimeout, 5*time.Minute)
	orDefault(&o.DatagramTimeout, 2*time.Minute)
	p := &Proxy{o: o, live: map[*admission]struct{}{}}
	p.heads.left.Store(headBudget)
	p.buffers.New = func() any { return new([chunk]byte) }
	p.datagrams.exchanges = map[endpoints]*exchange{}
	p.datagrams.buffers.New = func() any { return new([maxDatagram]byte) }
	p.lookups = lookups{ask: o.LookupHost, known: map[string]*question{}}
	return p
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Handle carries one connection that the sandbox opened to dst. It returns when
// the connection has ended and conn is closed. A refusal resets it at once, so
// that nothing in the sandbox waits, and is observed with its reason. who names
// the process for observations. When ctx ends the connection is reset.
//
// conn is a TCP socket, or has CloseWrite and Reset like wire.Conduit.
func (p *Proxy) Handle(ctx context.Context, conn net.Conn, dst netip.AddrPort, who string) {
	f := &flow{p: p, client: conn, who: who}
	f.life.abort = f.abort
	f.t = Target{Port: dst.Port(), Addr: dst.Addr().Unmap()}
	if host, ok := p.o.Names.Host(f.t.Addr); ok {
		f.t.Host, f.t.Addr = host, netip.Addr{}
	}
	defer f.end()
	if p.count.Add(1) > int64(p.o.MaxConns) {
		f.refuse(TCP, Decision{Why: "the sandbox has too many connections open"})
		return
	}
	defer context.AfterFunc(ctx, f.abort)()
	f.serve(ctx)
}

// Connections returns how many connections are open.
func (p *Proxy) Connections() int { return int(p.count.Load()) }
