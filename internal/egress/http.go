package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

func noAddr() netip.Addr { return netip.Addr{} }

func (f *flow) headDeadline(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(f.p.o.HeadTimeout)) // a dead socket shows at the next read
}

// http judges every request of an HTTP/1 connection before it passes. The
// server's direction is not read: nothing in it decides where a request ends.
func (f *flow) http(ctx context.Context, in *intake) {
	defer in.release()
	var done <-chan struct{}
	for first := true; ; first = false {
		n, more := f.readHead(in, first)
		if !more {
			break
		}
		if first && bytes.HasPrefix([]byte(preface), in.buf[:n]) {
			f.http2(ctx, in)
			return
		}
		r, cause := readRequest(in.buf[:n])
		policy := f.p.o.Policy()
		if first && cause == "" {
			if host, _, ok := splitAuthority(r.host); ok {
				f.follow(policy, host)
			}
			if f.wants(HTTP) {
				f.inspect(ctx, in, policy.Decide(f.t.asked()), true, false)
				return
			}
		}
		verdict := Decision{Why: cause}
		if cause == "" {
			verdict = f.judge(policy, &r)
		}
		if !verdict.Allowed {
			f.refuse(f.t.Protocol, verdict)
			break
		}
		upgrade := first && r.upgrade != "" && r.length == 0 && !hasToken(r.upgrade, "h2c")
		if first && !f.connect(ctx, policy, verdict, upgrade) {
			return
		}
		f.admit(verdict)
		if !f.send(in, n, &r, upgrade) {
			break
		}
		if upgrade {
			switched, ok := f.awaitUpgrade()
			if switched {
				f.carry(in)
				return
			}
			if !ok {
				break
			}
		}
		if first {
			done = f.carryDown()
		}
		if err := f.body(in, r.length); err != nil {
			if errors.Is(err, errFraming) {
				f.refuse(f.t.Protocol, Decision{Why: err.Error()})
			}
			f.abort()
			break
		}
	}
	if done != nil {
		<-done
	}
}

// lookPlain finds out whether a connection that needs no look is HTTP that a
// hook wants to see.
func (f *flow) lookPlain(ctx context.Context, policy *Policy, first Decision, in *intake) {
	if !token(string(in.buf[:1])) {
		f.unseen(ctx, policy, in)
		return
	}
	n, err := f.findHead(in) // drops nothing that begins like this
	if errors.Is(err, errBudget) {
		f.refuseHead(TCP, err)
		return
	}
	reached, two := f.t, false
	if err == nil && n > 0 {
		f.t.Protocol = HTTP
		r, cause := readRequest(in.buf[:n])
		two = bytes.HasPrefix([]byte(preface), in.buf[:n])
		if host, _, ok := splitAuthority(r.host); ok && cause == "" {
			f.follow(policy, host)
		}
		if (two || cause == "") && f.wants(HTTP) {
			f.inspect(ctx, in, first, true, two)
			return
		}
	}
	f.t = reached
	f.unseen(ctx, policy, in)
}

// readHead waits for a complete head and returns its length; false means that
// there is none and that it has been reported.
func (f *flow) readHead(in *intake, first bool) (int, bool) {
	if len(in.buf) == 0 {
		if err := in.fill(maxHead); err != nil {
			f.quit(err, first)
			return 0, false
		}
	}
	f.headDeadline(in.src)
	n, err := f.findHead(in)
	if err != nil {
		f.refuseHead(f.t.Protocol, err)
		return 0, false
	}
	if n == 0 {
		f.refuse(TCP, Decision{Why: f.opaqueWhy()})
	}
	return n, n > 0
}

// quit passes on that the client is done, or that it is gone.
func (f *flow) quit(err error, first bool) {
	if first || !errors.Is(err, io.EOF) || closeWrite(f.up.dst) != nil {
		f.abort()
		return
	}
	f.down.otherEnded()
}

// findHead reads the request line first, because other protocols may never send
// an empty line; 0 means that it is not HTTP.
func (f *flow) findHead(in *intake) (int, error) {
	for {
		end, err := in.until("\n", maxHead)
		if err != nil {
			return 0, err
		}
		if end == 2 && in.buf[0] == '\r' {
			in.advance(2) // an empty line before a request (RFC 9112, section 2.2)
			if len(in.buf) == 0 {
				if err := in.fill(maxHead); err != nil {
					return 0, err
				}
			}
			continue
		}
		line, whole := bytes.CutSuffix(in.buf[:end], []byte("\r\n"))
		if !bytes.HasPrefix([]byte(preface), line) && !bytes.Contains(line, []byte(" HTTP/1.")) {
			return 0, nil
		}
		if !whole {
			return end, nil // a bare line end: the empty line would not come either
		}
		return in.until("\r\n\r\n", maxHead)
	}
}

// judge compares a request with where the connection goes and asks the policy.
func (f *flow) judge(policy *Policy, r *request) Decision {
	if r.scheme != "" && (r.scheme != f.t.Protocol || !sameAuthority(r.absolute, r.host)) {
		return Decision{Why: fmt.Sprintf("its HTTP target %q does not agree with its Host %q", shorten(r.target), shorten(r.host))}
	}
	if host, _, ok := splitAuthority(r.host); ok && f.up == nil {
		f.follow(policy, host)
	}
	// After the first request Addr is the one that the name led to.
	wanted := f.t
	if wanted.Host != "" {
		wanted.Addr = noAddr()
	}
	if !wanted.agrees(r.host) {
		host, _, ok := splitAuthority(r.host)
		if f.t.Host != "" || !ok {
			return Decision{Why: fmt.Sprintf("its HTTP Host is %q, not the host that it looked up", shorten(r.host))}
		}
		if why := f.wrongHost(policy, host); why != "" {
			return Decision{Why: why}
		}
	}
	f.t.Method, f.t.Path = r.method, r.path
	return policy.Decide(f.t)
}

// sameAuthority compares the two places in which a request can name its host.
func sameAuthority(a, b string) bool {
	hostA, portA, okA := splitAuthority(a)
	hostB, portB, okB := splitAuthority(b)
	return okA && okB && lowerASCII(hostA) == lowerASCII(hostB) && (portA == portB || portA == 0 || portB == 0)
}

// http2 is HTTP/2 without TLS. Its requests are packed too tightly to be judged
// here; an inspector can do it.
func (f *flow) http2(ctx context.Context, in *intake) {
	for len(in.buf) < len(preface) {
		if err := in.fill(maxHead); err != nil {
			f.refuseHead(HTTP, err)
			return
		}
	}
	if string(in.buf[:len(preface)]) != preface {
		f.refuse(HTTP, Decision{Why: "it begins like HTTP/2 but is not"})
		return
	}
	if f.p.o.Inspector == nil {
		f.refuse(HTTP, Decision{Why: "it is HTTP/2 without TLS, whose requests cannot be inspected here"})
		return
	}
	f.inspect(ctx, in, f.p.o.Policy().Decide(f.t.asked()), true, true)
}

// send passes a judged head on, byte for byte unless something must change.
func (f *flow) send(in *intake, n int, r *request, upgrade bool) bool {
	head := in.buf[:n]
	strip := r.upgrade != "" && !upgrade
	if strip || f.forward != nil {
		head = r.head(strip, f.forward)
	}
	wrote, err := f.up.dst.Write(head)
	f.up.moved.Add(int64(wrote))
	in.advance(n)
	if err != nil {
		f.abort()
	}
	return err == nil
}

// awaitUpgrade reads the server's answer to an upgrade: the client's next bytes
// stop being requests only when the server has switched. ok is false when the
// connection is over.
func (f *flow) awaitUpgrade() (switched, ok bool) {
	in := &intake{src: f.down.src, budget: &f.p.heads}
	defer in.release()
	_ = in.src.SetReadDeadline(time.Now().Add(f.p.o.HalfOpenTimeout)) // a dead socket shows at the read
	for {
		n, err := in.until("\r\n\r\n", 2*maxHead)
		if err != nil {
			f.abort()
			return false, false
		}
		line, _, _ := bytes.Cut(in.buf[:n], []byte("\r\n"))
		status := ""
		if parts := bytes.SplitN(line, []byte(" "), 3); len(parts) > 1 && bytes.HasPrefix(parts[0], []byte("HTTP/1.")) {
			status = string(parts[1])
		}
		final := len(status) != 3 || status[0] != '1' || status == "101"
		if final {
			n = len(in.buf) // and what already follows
		}
		wrote, err := f.down.dst.Write(in.buf[:n])
		f.down.moved.Add(int64(wrote))
		in.advance(n)
		if err != nil || final && f.down.rearm() != nil {
			f.abort()
			return false, false
		}
		if final {
			return status == "101", true
		}
	}
}
