package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// flow is one connection of the sandbox, from its acceptance to its end.
type flow struct {
	p        *Proxy
	who      string
	t        Target    // what it wants, as far as it is known
	opaque   *Decision // admits it without a look; nil when it must be looked at
	client   net.Conn
	up, down *stream // once dialled
	forward  *forward
	life     admission

	mu       sync.Mutex // guards the two below
	upstream net.Conn   // the socket
	aborted  bool
}

// serve decides how much must be looked at, looks, and carries.
func (f *flow) serve(ctx context.Context) {
	policy := f.p.o.Policy()
	if f.t.Host == "" {
		if f.p.o.Names.Contains(f.t.Addr) {
			f.refuse(TCP, Decision{Why: "no name was looked up for this address"})
			return
		}
		f.p.locate(&f.t)
	}
	first := policy.Decide(f.t)
	if !first.Allowed && f.p.ask(ctx, policy, f.t, f.who, first) {
		policy = f.p.o.Policy()
		first = policy.Decide(f.t)
	}
	if !first.Allowed {
		f.refuse(TCP, first)
		return
	}
	f.t.Protocol = TCP
	if opaque := policy.Decide(f.t); opaque.Allowed {
		if verdict, ok := f.p.hidden(ctx, policy, f.t); ok {
			f.refuse(TCP, verdict)
			return
		}
		if !f.mayWant(policy) {
			if f.connect(ctx, policy, opaque, false) {
				f.carry(nil)
			}
			return
		}
		f.opaque = &opaque
	}
	f.look(ctx, policy, first)
}

// unseen carries a connection that was looked at for a hook, and that no hook
// wants, as if it had not been looked at.
func (f *flow) unseen(ctx context.Context, policy *Policy, in *intake) {
	f.t.Protocol = TCP
	if f.insists() {
		f.refuse(TCP, Decision{Why: "what it asks for cannot be seen, and calls of models have to be metered, as the sandbox has a budget"})
		return
	}
	_ = f.client.SetReadDeadline(time.Time{}) // a dead socket shows at the next read
	if f.connect(ctx, policy, *f.opaque, false) {
		f.carry(in)
	}
}

// look reads the first bytes and finds out what they are.
func (f *flow) look(ctx context.Context, policy *Policy, first Decision) {
	in := &intake{src: f.client, budget: &f.p.heads}
	defer in.release()
	f.headDeadline(f.client)
	if err := in.fill(maxHello); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			f.observe(Allowed, TCP, first.Rule, "closed before its first byte")
			return // some programs connect ahead of time
		}
		if f.opaque != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			f.unseen(ctx, policy, in) // its server speaks first
			return
		}
		f.refuseHead(TCP, err)
		return
	}
	switch c := in.buf[0]; {
	case c == recordHandshake:
		f.lookTLS(ctx, policy, first, in)
	case f.opaque != nil:
		f.lookPlain(ctx, policy, first, in)
	case token(string(c)) || c == '\r':
		f.t.Protocol = HTTP
		f.http(ctx, in)
	default:
		f.refuse(TCP, Decision{Rule: first.Rule, Why: f.opaqueWhy()})
	}
}

func (f *flow) opaqueWhy() string {
	return "it is neither TLS nor HTTP; allow tcp://" + f.t.authority() + " if that is intended"
}

// lookTLS judges a ClientHello by its server name.
func (f *flow) lookTLS(ctx context.Context, policy *Policy, first Decision, in *intake) {
	f.t.Protocol = HTTPS
	var name string
	for {
		found, need, cause := readHello(in.buf)
		if cause != "" && f.opaque != nil {
			f.unseen(ctx, policy, in)
			return
		}
		if cause != "" {
			f.refuse(HTTPS, Decision{Why: cause})
			return
		}
		if need == 0 {
			name = found
			break
		}
		for len(in.buf) < need {
			if err := in.fill(maxHello); err != nil {
				f.refuseHead(HTTPS, err)
				return
			}
		}
	}
	reached := f.t
	f.follow(policy, name)
	why := f.wrongName(policy, name)
	if f.opaque != nil && (why != "" || !f.wants(HTTPS)) {
		f.t = reached // nothing is put in there, and the name asked for does not matter
		f.unseen(ctx, policy, in)
		return
	}
	if why != "" {
		f.refuse(HTTPS, Decision{Why: why})
		return
	}
	verdict := policy.Decide(f.t)
	if f.wants(HTTPS) && (verdict.Allowed || policy.perRequest(f.t)) {
		f.inspect(ctx, in, first, false, false)
		return
	}
	if !verdict.Allowed {
		if f.p.o.Inspector != nil && policy.perRequest(f.t) {
			f.inspect(ctx, in, first, false, false)
			return
		}
		f.refuse(HTTPS, verdict)
		return
	}
	if f.connect(ctx, policy, verdict, false) {
		f.carry(in)
	}
}

// follow turns a connection that went straight to an address into one to the
// host that it asks for, before anything is dialled. It then goes where that
// name leads, and not where a denied host may be.
func (f *flow) follow(policy *Policy, name string) {
	if host, cause := canonicalHost(name); cause == "" && policy.byName(f.t) {
		f.t.name(host)
	}
}

// wrongName says why a TLS server name does not agree with where the connection goes.
func (f *flow) wrongName(policy *Policy, name string) string {
	switch {
	case f.t.Host == "" && name == "":
		return ""
	case f.t.Host == "":
		return f.wrongHost(policy, name)
	case name == "":
		return "its TLS names no server (SNI); allow tcp://" + f.t.authority() + " if that is intended"
	}
	canonical, cause := canonicalHost(name)
	if cause != "" || canonical != f.t.Host {
		return fmt.Sprintf("its TLS asks for %q, not for the host that it looked up", shorten(name))
	}
	return ""
}

// wrongHost judges a name inside a connection that went straight to an address.
// A rule that allows the address on condition of agreement wants the address.
// Where everything is allowed, the name must be allowed as well.
func (f *flow) wrongHost(policy *Policy, name string) string {
	if policy.Default == Allow && policy.ruleFor(f.t) == nil {
		named := f.t
		named.name(name)
		if verdict := policy.Decide(named); !verdict.Allowed {
			return fmt.Sprintf("it asks for %q: %s", shorten(name), verdict.Why)
		}
		return ""
	}
	return fmt.Sprintf("it asks for %q, and only the address is allowed; allow tcp://%s if that is intended", shorten(name), f.t.authority())
}

// connect dials, and reports whether there is a connection to carry.
func (f *flow) connect(ctx context.Context, policy *Policy, verdict Decision, tunnelled bool) bool {
	made, reachable, err := f.p.dial(ctx, f.t, tunnelled, policy.Decide)
	if !reachable.Allowed {
		f.refuse(f.t.Protocol, reachable)
		return false
	}
	if err != nil {
		f.observe(Failed, f.t.Protocol, verdict.Rule, "cannot connect: "+err.Error())
		f.abort()
		return false
	}
	if made.addr.IsValid() {
		f.t.Addr = made.addr
		f.p.locate(&f.t)
	}
	f.forward = made.forward
	f.mu.Lock()
	f.upstream = made.conn
	late := f.aborted
	f.mu.Unlock()
	if late { // while we dialled
		reset(made.conn)
		return false
	}
	f.up = f.stream(made.conn, f.client)
	f.down = f.stream(f.client, made.conn)
	f.life.moved = func() (in, out int64) { return f.down.moved.Load(), f.up.moved.Load() }
	if made.proxied && f.t.Host != "" {
		verdict.Why += "; the proxy of this machine resolves the name"
	}
	f.admit(verdict)
	f.observe(Allowed, f.t.Protocol, verdict.Rule, verdict.Why)
	return true
}

func (f *flow) stream(dst, src net.Conn) *stream {
	return &stream{dst: dst, src: src, buffers: &f.p.buffers, halfOpen: f.p.o.HalfOpenTimeout}
}

// carry moves both directions to their ends, after the bytes that in holds.
func (f *flow) carry(in *intake) {
	if in != nil && !f.flush(in) {
		return
	}
	if err := f.up.rearm(); err != nil {
		f.abort()
		return
	}
	done := f.carryDown()
	f.finish(f.up, f.down, forever)
	<-done
}

// flush passes on the bytes that were read for judging.
func (f *flow) flush(in *intake) bool {
	n, err := f.up.dst.Write(in.buf)
	f.up.moved.Add(int64(n))
	in.release()
	if err != nil {
		f.abort()
	}
	return err == nil
}

// carryDown moves the server's direction beside the caller.
func (f *flow) carryDown() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.finish(f.down, f.up, forever)
	}()
	return done
}

// finish runs one direction to its end and passes the end on. An orderly end
// closes only that half; anything else ends both.
func (f *flow) finish(one, other *stream, limit int64) {
	if _, err := one.run(limit); err != nil {
		f.abort()
		return
	}
	if err := closeWrite(one.dst); err != nil && !errors.Is(err, net.ErrClosed) {
		f.abort()
		return
	}
	other.otherEnded()
}

// refuse says why and resets the connection, in this order, so that the reason
// is there when the reset is seen.
func (f *flow) refuse(protocol string, verdict Decision) {
	f.observe(Denied, protocol, verdict.Rule, verdict.Why)
	f.abort()
}

// refuseHead refuses a head that never became complete.
func (f *flow) refuseHead(protocol string, err error) {
	why := "it broke off: " + err.Error()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		why = "it sent no complete TLS or HTTP head within " + f.p.o.HeadTimeout.String() +
			"; if its server speaks first, allow tcp://" + f.t.authority()
	case errors.Is(err, errTooLong):
		why = "its head is longer than " + strconv.Itoa(maxHead) + " bytes"
	case errors.Is(err, errBudget):
		why = "the sandbox has " + err.Error()
	}
	f.refuse(protocol, Decision{Why: why})
}

// abort resets both sides. It may be called at any time and more than once.
func (f *flow) abort() {
	f.mu.Lock()
	f.aborted = true
	upstream := f.upstream
	f.mu.Unlock()
	reset(f.client)
	if upstream != nil {
		reset(upstream)
	}
}

// end closes what is left and reports the bytes.
func (f *flow) end() {
	f.p.count.Add(-1)
	f.mu.Lock()
	upstream := f.upstream
	f.mu.Unlock()
	_ = f.client.Close() // ends in order were passed on before
	if upstream != nil {
		_ = upstream.Close()
	}
	f.p.forget(&f.life)
}

// admit enters what f was admitted for.
func (f *flow) admit(verdict Decision) {
	decide := decides(f.t)
	// An unseen connection ends when a hook begins to insist on a look.
	f.p.admit(&f.life, func(policy *Policy) bool { return decide(policy) && !f.insists() },
		f.observation(Allowed, f.t.Protocol, verdict.Rule, verdict.Why))
}

func (f *flow) observe(verdict, protocol, rule, why string) {
	f.p.o.Observe(f.observation(verdict, protocol, rule, why))
}

func (f *flow) observation(verdict, protocol, rule, why string) Observation {
	return Observation{Host: f.t.Host, Addr: f.t.Addr, Port: f.t.Port, Protocol: protocol, Method: f.t.Method, Path: pathOnly(f.t.Path),
		Process: f.who, Verdict: verdict, Rule: rule, Why: why, Count: 1}
}
