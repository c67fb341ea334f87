package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// fallbackDelay is how long one address gets before the next is tried beside it
// (RFC 8305, section 8).
const fallbackDelay = 250 * time.Millisecond

// maxAddrs bounds how many addresses of one name are tried.
const maxAddrs = 16

// errNoName is the error for a name without an address.
var errNoName = errors.New("the name has no address")

// link is a connection to the real host.
type link struct {
	conn    net.Conn
	addr    netip.Addr // invalid when a proxy of the host resolved the name
	forward *forward   // requests go to an HTTP proxy as they are
	proxied bool       // by a proxy of the host
}

// dial reaches t, which policy has admitted by name or address, at an address
// that reach admits. The verdict reports whether any address was left to dial. With tunnelled, an
// HTTP proxy of the host is asked for a tunnel even where it could forward requests.
func (p *Proxy) dial(ctx context.Context, t Target, tunnelled bool, reach func(Target) Decision) (link, Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.DialTimeout)
	defer cancel()
	proxy, err := p.o.Upstream.proxyFor(t)
	if err != nil {
		return link{}, Decision{Allowed: true}, err
	}
	addrs, verdict, err := p.addresses(ctx, t, reach)
	if !verdict.Allowed {
		return link{}, verdict, nil
	}
	if proxy != nil {
		// Where the host itself cannot resolve the name, only its proxy can.
		made, err := p.dialProxy(ctx, proxy, t, tunnelled)
		made.proxied = true
		return made, verdict, err
	}
	if err != nil {
		return link{}, verdict, err
	}
	conn, addr, err := p.race(ctx, addrs, t.Port)
	return link{conn: conn, addr: addr}, verdict, err
}

// addresses resolves t and keeps the addresses that may be reached.
func (p *Proxy) addresses(ctx context.Context, t Target, reach func(Target) Decision) ([]netip.Addr, Decision, error) {
	if t.Host == "" {
		return []netip.Addr{t.Addr}, Decision{Allowed: true}, nil
	}
	verdict := Decision{Allowed: true}
	found, err := p.lookups.find(ctx, t.Host)
	if err == nil && len(found) == 0 {
		err = errNoName
	}
	if err != nil {
		return nil, verdict, fmt.Errorf("cannot resolve the name: %w", err)
	}
	var kept []netip.Addr
	var refused Decision
	for _, addr := range found {
		t.Addr = addr.Unmap()
		p.locate(&t)
		if one := reach(t); one.Allowed {
			kept = append(kept, t.Addr)
		} else {
			refused = one
		}
	}
	if len(kept) == 0 {
		return nil, refused, nil
	}
	return kept[:min(len(kept), maxAddrs)], verdict, nil
}

func (p *Proxy) dialProxy(ctx context.Context, proxy *url.URL, t Target, tunnelled bool) (link, error) {
	conn, err := p.o.Dial(ctx, "tcp", proxyAddr(proxy))
	if err != nil {
		return link{}, fmt.Errorf("cannot reach the proxy of this machine: %w", err)
	}
	if proxy.Scheme == "https" {
		if p.o.Inspector == nil {
			return link{}, errors.Join(errors.New("the proxy of this machine speaks TLS, which is not supported"), conn.Close())
		}
		secure, err := p.o.Inspector.Client(ctx, conn, proxy.Hostname())
		if err != nil {
			return link{}, errors.Join(fmt.Errorf("cannot speak TLS with the proxy of this machine: %w", err), conn.Close())
		}
		conn = secure
	}
	isHTTP := proxy.Scheme == "http" || proxy.Scheme == "https"
	if isHTTP && t.Protocol == HTTP && !tunnelled {
		return link{conn: conn, forward: &forward{strings.TrimSuffix(t.authority(), ":80"), authorization(proxy)}}, nil
	}
	deadline, _ := ctx.Deadline()
	if err := tunnel(ctx, conn, proxy, t, deadline); err != nil {
		return link{}, errors.Join(err, conn.Close())
	}
	return link{conn: conn}, nil
}

// attempt is the outcome of dialling one address.
type attempt struct {
	conn net.Conn
	addr netip.Addr
	err  error
}

// race connects to the first address that answers (Happy Eyeballs): families take
// turns, and each address starts when the one before failed or after a short while.
func (p *Proxy) race(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, netip.Addr, error) {
	addrs = takeTurns(addrs)
	dial := func(ctx context.Context, addr netip.Addr) attempt {
		conn, err := p.o.Dial(ctx, "tcp", netip.AddrPortFrom(addr, port).String())
		return attempt{conn, addr, err}
	}
	if len(addrs) == 1 {
		only := dial(ctx, addrs[0])
		return only.conn, only.addr, only.err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // an attempt that comes second closes itself
	results := make(chan attempt)
	next := time.NewTimer(0)
	defer next.Stop()
	started, ended := 0, 0
	var failures []string
	for ended < len(addrs) {
		select {
		case <-next.C:
			if started == len(addrs) {
				continue
			}
			go func(addr netip.Addr) {
				one := dial(ctx, addr)
				select {
				case results <- one:
				case <-ctx.Done():
					if one.conn != nil {
						_ = one.conn.Close() // no one waits for it anymore
					}
				}
			}(addrs[started])
			started++
			next.Reset(fallbackDelay)
		case one := <-results:
			if one.err == nil {
				return one.conn, one.addr, nil
			}
			failures = append(failures, one.err.Error())
			ended++
			next.Reset(0)
		case <-ctx.Done():
			return nil, netip.Addr{}, fmt.Errorf("%s%w", strings.Join(append(failures, ""), "; "), context.Cause(ctx))
		}
	}
	return nil, netip.Addr{}, errors.New(strings.Join(failures, "; "))
}

// takeTurns orders addresses so that the families alternate, beginning with
// the resolver's first choice (RFC 8305, section 4).
func takeTurns(addrs []netip.Addr) []netip.Addr {
	var first, second []netip.Addr
	for _, addr := range addrs {
		if addr.Is4() == addrs[0].Is4() {
			first = append(first, addr)
		} else {
			second = append(second, addr)
		}
	}
	turns := make([]netip.Addr, 0, len(addrs))
	for len(first) > 0 || len(second) > 0 {
		if len(first) > 0 {
			turns, first = append(turns, first[0]), first[1:]
		}
		if len(second) > 0 {
			turns, second = append(turns, second[0]), second[1:]
		}
	}
	return turns
}
