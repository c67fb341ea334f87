package egress

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Upstream is the proxy that the host itself must use to reach the internet.
// The zero value is none.
type Upstream struct {
	web func(*url.URL) (*url.URL, error) // for http and https
	all func(*url.URL) (*url.URL, error) // for everything else
}

// UpstreamFromEnv reads HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in upper
// or lower case. ALL_PROXY alone also serves protocols other than HTTP, as in curl.
// The result is nil when no proxy is set. Its errors have kind fault.Invalid.
func UpstreamFromEnv(getenv func(string) string) (*Upstream, error) {
	get := func(name string) string {
		if value := getenv(name); value != "" {
			return value
		}
		return getenv(lowerASCII(name))
	}
	all := get("ALL_PROXY")
	web := httpproxy.Config{HTTPProxy: get("HTTP_PROXY"), HTTPSProxy: get("HTTPS_PROXY"), NoProxy: get("NO_PROXY")}
	for _, proxy := range []*string{&web.HTTPProxy, &web.HTTPSProxy} {
		if *proxy == "" {
			*proxy = all
		}
	}
	if web.HTTPProxy == "" && web.HTTPSProxy == "" {
		return nil, nil
	}
	for _, text := range []string{web.HTTPProxy, web.HTTPSProxy, all} {
		if _, err := proxyURL(text); err != nil {
			return nil, err
		}
	}
	rest := httpproxy.Config{HTTPProxy: all, HTTPSProxy: all, NoProxy: web.NoProxy}
	return &Upstream{web: web.ProxyFunc(), all: rest.ProxyFunc()}, nil
}

// proxyURL checks the text of a proxy variable. It never shows it: proxies have
// passwords.
func proxyURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return nil, fault.New(fault.Invalid, "cannot read the proxy variables of this machine: one is not a URL").
			WithHint("env | grep -i _proxy")
	}
	switch parsed.Scheme {
	case "http", "https", "socks5", "socks5h":
		return parsed, nil
	}
	return nil, fault.New(fault.Unsupported, "cannot use a proxy of kind %q", parsed.Scheme).
		WithHint("set HTTP_PROXY, HTTPS_PROXY or ALL_PROXY to an http://, https:// or socks5:// URL")
}

// forward is a request's way through an HTTP proxy without a tunnel.
type forward struct{ authority, authorization string }

// proxyFor returns the proxy for a target, or nil.
func (u *Upstream) proxyFor(t Target) (*url.URL, error) {
	if u == nil {
		return nil, nil
	}
	scheme, find := "https", u.all
	switch t.Protocol {
	case HTTP:
		scheme, find = "http", u.web
	case HTTPS:
		find = u.web
	case TCP:
		if t.Port == 443 { // the one port to which every such proxy opens tunnels
			find = u.web
		}
	}
	return find(&url.URL{Scheme: scheme, Host: t.authority()})
}

// authorization is the Basic credentials in a proxy's URL.
func authorization(proxy *url.URL) string {
	if proxy.User == nil {
		return ""
	}
	password, _ := proxy.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password))
}

// proxyAddr is host and port of a proxy.
func proxyAddr(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		switch proxy.Scheme {
		case "http":
			port = "80"
		case "https":
			port = "443"
		default:
			port = "1080"
		}
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}

// tunnel asks the proxy on conn for a connection to t. An unanswered request
// ends with the deadline.
func tunnel(ctx context.Context, conn net.Conn, proxy *url.URL, t Target, deadline time.Time) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	var err error
	if strings.HasPrefix(proxy.Scheme, "socks5") {
		err = socks(conn, proxy, t)
	} else {
		err = connect(conn, proxy, t)
	}
	if err != nil {
		return fmt.Errorf("the proxy of this machine: %w", err)
	}
	return conn.SetDeadline(time.Time{})
}

// connect speaks HTTP CONNECT. It reads byte by byte: what follows the answer
// already belongs to the stream.
func connect(conn net.Conn, proxy *url.URL, t Target) error {
	var b bytes.Buffer
	b.WriteString("CONNECT " + t.authority() + " HTTP/1.1\r\nHost: " + t.authority() + "\r\n")
	if credentials := authorization(proxy); credentials != "" {
		b.WriteString("Proxy-Authorization: " + credentials + "\r\n")
	}
	b.WriteString("\r\n")
	if _, err := conn.Write(b.Bytes()); err != nil {
		return err
	}
	head := make([]byte, 0, 512)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if len(head) >= maxHead {
			return errTooLong
		}
		head = append(head, 0)
		if _, err := io.ReadFull(conn, head[len(head)-1:]); err != nil {
			return err
		}
	}
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	parts := strings.SplitN(string(line), " ", 3)
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "HTTP/1.") || len(parts[1]) != 3 || parts[1][0] != '2' {
		return fmt.Errorf("it answered %q", shorten(string(line)))
	}
	return nil
}

// socks speaks SOCKS5 (RFC 1928) with an optional password (RFC 1929). The
// proxy gets the name and resolves it.
func socks(conn net.Conn, proxy *url.URL, t Target) error {
	password, _ := proxy.User.Password()
	greeting := []byte{5, 1, 0}
	if proxy.User != nil {
		greeting = []byte{5, 2, 0, 2}
	}
	if _, err := conn.Write(greeting); err != nil {
		return err
	}
	var answer [2]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	switch {
	case answer == [2]byte{5, 0}:
	case answer == [2]byte{5, 2} && proxy.User != nil:
		user := proxy.User.Username()
		if len(user) > 255 || len(password) > 255 {
			return fmt.Errorf("its user name or password is too long")
		}
		login := append([]byte{1, byte(len(user))}, user...)
		login = append(append(login, byte(len(password))), password...)
		if _, err := conn.Write(login); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, answer[:]); err != nil {
			return err
		}
		if answer[1] != 0 {
			return fmt.Errorf("it refused the user name or password")
		}
	default:
		return fmt.Errorf("it wants an unknown way to log in")
	}
	return socksConnect(conn, t)
}

func socksConnect(conn net.Conn, t Target) error {
	ask := []byte{5, 1, 0}
	switch {
	case t.Host != "":
		ask = append(append(ask, 3, byte(len(t.Host))), t.Host...)
	case t.Addr.Is4():
		ask = append(append(ask, 1), t.Addr.AsSlice()...)
	default:
		ask = append(append(ask, 4), t.Addr.AsSlice()...)
	}
	ask = append(ask, byte(t.Port>>8), byte(t.Port))
	if _, err := conn.Write(ask); err != nil {
		return err
	}
	var answer [4]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if answer[0] != 5 || answer[1] != 0 {
		return fmt.Errorf("it refused the connection with code %s", strconv.Itoa(int(answer[1])))
	}
	length := map[byte]int{1: netip.IPv4Unspecified().BitLen() / 8, 4: netip.IPv6Unspecified().BitLen() / 8}[answer[3]]
	if answer[3] == 3 {
		var one [1]byte
		if _, err := io.ReadFull(conn, one[:]); err != nil {
			return err
		}
		length = int(one[0])
	}
	_, err := io.ReadFull(conn, make([]byte, length+2))
	return err
}
