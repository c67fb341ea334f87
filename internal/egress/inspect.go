package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Inspector looks at single requests where the parser of this package cannot:
// inside TLS, in the name of a host and with a certificate that the sandbox
// trusts, and in HTTP/2. Package intercept has the one that keepers use; it is
// separate because of what it imports (crypto/tls, net/http).
type Inspector interface {
	// Inspect speaks HTTP with the client on conn, asks s about every request and
	// carries those that s admits. It returns when conn has ended and no request
	// is under way. An error means that no request came, and is worded for people.
	Inspect(ctx context.Context, conn net.Conn, s *Session) error
	// Client speaks TLS on conn and verifies that it leads to host.
	Client(ctx context.Context, conn net.Conn, host string) (net.Conn, error)
	// Wants reports whether single requests must be looked at although no rule
	// mentions them. protocol is HTTP or HTTPS, or empty before the first byte
	// of a connection that could go without a look; host is empty where only
	// those bytes can say it.
	Wants(host string, port uint16, protocol string) bool
	// Insists reports whether nothing may go to a host unseen, whatever the rules say.
	Insists(host string, port uint16) bool
}

// Session is what an inspector must know about one connection of the sandbox.
type Session struct {
	Name  string // the one host that its requests are for: canonical, or an address
	Port  uint16
	Plain bool // HTTP without TLS, on both sides
	Two   bool // with Plain: HTTP/2

	flow   *flow
	wanted Target // without an address that a name led to
}

// inspect hands the connection to the inspector; first is the verdict on it as
// a whole.
func (f *flow) inspect(ctx context.Context, in *intake, first Decision, plain, two bool) {
	s := &Session{Name: f.t.hostName(), Port: f.t.Port, Plain: plain, Two: two, flow: f, wanted: f.t}
	var received, sent atomic.Int64
	conn := &counted{Conn: &replay{f.client, in}, received: &received, sent: &sent}
	f.life.moved = func() (int64, int64) { return sent.Load(), received.Load() }
	whole := f.t
	whole.Protocol = "" // single requests are judged on their own
	f.p.admit(&f.life, decides(whole), f.observation(Allowed, f.t.Protocol, first.Rule, first.Why))
	_ = f.client.SetReadDeadline(time.Time{}) // from here on the inspector's
	if err := f.p.o.Inspector.Inspect(ctx, conn, s); err != nil {
		f.observe(Failed, f.t.Protocol, first.Rule, "its requests have to be inspected, and "+err.Error())
	}
}

// wants reports whether a hook of the inspector wants to see the requests.
func (f *flow) wants(protocol string) bool {
	return f.p.o.Inspector != nil && f.p.o.Inspector.Wants(f.t.hostName(), f.t.Port, protocol)
}

// insists reports whether a hook lets nothing go there unseen.
func (f *flow) insists() bool {
	return f.p.o.Inspector != nil && f.p.o.Inspector.Insists(f.t.hostName(), f.t.Port)
}

// mayWant is wants before the first byte. The name of the host may be in there.
func (f *flow) mayWant(policy *Policy) bool {
	if f.p.o.Inspector != nil && policy.byName(f.t) && f.p.o.Inspector.Wants("", f.t.Port, "") {
		return true
	}
	return f.wants("")
}

// hostName is the host of t, or its address.
func (t Target) hostName() string {
	if t.Host == "" {
		return t.Addr.String()
	}
	return t.Host
}

// Request is what a session decides on. Path is in the form in which it will be
// sent on, query included.
type Request struct {
	Method, Authority, Path string
	Cancel                  func() // ends it when a new revision forbids it
}

// Refused is the error of [Session.Dial] where the policy closes every address.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// Judge decides on one request by the policy in force, and records it. The
// caller must call done when an admitted request has ended.
func (s *Session) Judge(r Request) (verdict Decision, done func()) {
	f := s.flow
	policy := f.p.o.Policy()
	t := s.target()
	t.Method, t.Path = r.Method, r.Path
	verdict = s.decide(policy, t, r)
	if !verdict.Allowed {
		s.observe(Denied, t, verdict)
		return verdict, func() {}
	}
	one := &admission{abort: r.Cancel}
	f.p.admit(one, decides(t), Observation{})
	s.observe(Allowed, t, verdict)
	return verdict, func() { f.p.forget(one) }
}

// Refuse records a request that the inspector itself refuses.
func (s *Session) Refuse(r Request, why string) {
	t := s.target()
	t.Method, t.Path = r.Method, r.Path
	s.observe(Denied, t, Decision{Why: why})
}

func (s *Session) decide(policy *Policy, t Target, r Request) Decision {
	if upperASCII(r.Method) == "CONNECT" {
		return Decision{Why: "it asks for a CONNECT tunnel, which hides where it leads"}
	}
	if !t.agrees(r.Authority) {
		if t.Host != "" {
			return Decision{Why: fmt.Sprintf("its HTTP Host is %q, not the host that it looked up", shorten(r.Authority))}
		}
		if why := s.flow.wrongHost(policy, r.Authority); why != "" {
			return Decision{Why: why}
		}
	}
	return policy.Decide(t)
}

// target is where the session goes, without an address that was dialled.
func (s *Session) target() Target {
	t := s.wanted
	t.Protocol = HTTPS
	if s.Plain {
		t.Protocol = HTTP
	}
	return t
}

// Dial connects to the host of the session. The address does not depend on the
// request: many requests share a connection.
func (s *Session) Dial(ctx context.Context) (net.Conn, error) {
	f := s.flow
	t := s.target()
	if f.p.carried.Add(1) > int64(f.p.o.MaxConns) {
		f.p.carried.Add(-1)
		err := errors.New("the sandbox has too many connections open")
		s.observe(Failed, t, Decision{Why: err.Error()})
		return nil, unreached{err}
	}
	conn, err := s.dial(ctx, t)
	if err != nil {
		f.p.carried.Add(-1)
		return nil, err
	}
	return conn, nil
}

// unreached is an error of dialling that has been recorded.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

func (s *Session) dial(ctx context.Context, t Target) (net.Conn, error) {
	f := s.flow
	policy := f.p.o.Policy()
	made, reachable, err := f.p.dial(ctx, t, !s.Plain || s.Two, policy.reaches)
	if !reachable.Allowed {
		s.observe(Denied, t, reachable)
		return nil, &Refused{reachable.Why}
	}
	if err != nil {
		s.observe(Failed, t, Decision{Why: "cannot connect: " + err.Error()})
		return nil, unreached{err}
	}
	conn := &carried{Conn: made.conn, p: f.p}
	conn.life.abort = func() { reset(made.conn) }
	if made.addr.IsValid() {
		t.Addr = made.addr
		f.p.locate(&t)
	}
	f.p.admit(&conn.life, func(policy *Policy) bool { return !t.Addr.IsValid() || policy.reaches(t).Allowed }, Observation{})
	return conn, nil
}

// Forwards returns the proxy of this machine that takes the requests of a plain
// session as they are, with their whole URL. [Session.Dial] then leads there.
func (s *Session) Forwards() *url.URL {
	proxy, err := s.flow.p.o.Upstream.proxyFor(s.target())
	if err != nil || proxy == nil || !s.Plain || s.Two || proxy.Scheme != "http" && proxy.Scheme != "https" {
		return nil // Dial says what is wrong
	}
	return proxy
}

// Failed records that talking to the host failed.
func (s *Session) Failed(err error) {
	var refused *Refused
	var before unreached
	if errors.As(err, &refused) || errors.As(err, &before) || errors.Is(err, context.Canceled) {
		return // reported already, or no fault of the host
	}
	s.observe(Failed, s.target(), Decision{Why: "cannot speak with the host: " + err.Error()})
}

func (s *Session) observe(verdict string, t Target, d Decision) {
	f := s.flow
	f.p.o.Observe(Observation{Host: t.Host, Addr: t.Addr, Port: t.Port, Protocol: t.Protocol, Method: t.Method, Path: pathOnly(t.Path),
		Process: f.who, Verdict: verdict, Rule: d.Rule, Why: d.Why, Count: 1})
}

// carried is a connection to a host that a session dialled.
type carried struct {
	net.Conn
	p    *Proxy
	life admission
	once sync.Once
}

func (c *carried) Close() error {
	c.once.Do(func() {
		c.p.forget(&c.life)
		c.p.carried.Add(-1)
	})
	return c.Conn.Close()
}

// counted is the client's connection in an inspector's hands.
type counted struct {
	net.Conn
	received, sent *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}
