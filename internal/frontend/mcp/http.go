package mcp

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const (
	endpoint      = "/mcp"
	shortestToken = 16
	// statelessRevision is the first revision of the protocol without sessions.
	statelessRevision = "2026-07-28"
	versionHeader     = "Mcp-Protocol-Version"
)

// serveHTTP serves streamable HTTP until ctx ends.
func (s *server) serveHTTP(ctx context.Context) error {
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	token, made, err := s.token()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(s.Stdout, "url   http://%s%s\n", listener.Addr(), endpoint)
	if made && s.TokenFile == "" {
		fmt.Fprintf(s.Stdout, "token %s\n", token)
	}
	web := &http.Server{
		Handler:           s.guard(token, s.route()),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       introduce,
	}
	stop := context.AfterFunc(ctx, func() {
		// Answers of calls that end now still go out; streams without end do not
		// hold it up.
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for _, one := range s.sessions.list() {
			go s.sessions.end(one)
		}
		if web.Shutdown(patience) != nil {
			_ = web.Close()
		}
	})
	defer stop()
	if err := web.Serve(&door{Listener: listener}); !errors.Is(err, http.ErrServerClosed) {
		return fault.Wrap(fault.Unavailable, err, "cannot serve %s", listener.Addr())
	}
	return nil
}

// listen opens the address, which must be one of this machine alone.
func (s *server) listen(ctx context.Context) (net.Listener, error) {
	host, _, err := net.SplitHostPort(s.HTTP)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot listen on %q", s.HTTP).WithHint("litterbox mcp --http 127.0.0.1:8970")
	}
	if !s.AnyAddress && !loopback(host) {
		return nil, fault.New(fault.Denied, "cannot listen on %q: other machines could reach it, and anyone with the token can run commands in sandboxes", s.HTTP).
			WithHint("litterbox mcp --http 127.0.0.1:8970, or --any-address if that is intended")
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.HTTP)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot listen on %q", s.HTTP)
	}
	return listener, nil
}

// token reads the bearer token, or makes one.
func (s *server) token() (token string, made bool, err error) {
	if s.TokenFile == "" {
		return rand.Text(), true, nil
	}
	info, err := os.Stat(s.TokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		token = rand.Text()
		file, err := os.OpenFile(s.TokenFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = file.WriteString(token + "\n")
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return "", false, fault.Wrap(fault.Unavailable, err, "cannot write the token file")
		}
		return token, true, nil
	}
	if err != nil {
		return "", false, fault.Wrap(fault.Unavailable, err, "cannot read the token file")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", false, fault.New(fault.Denied, "cannot use the token file %q: others can read it", s.TokenFile).
			WithHint("chmod 600 %s", s.TokenFile)
	}
	content, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "", false, fault.Wrap(fault.Unavailable, err, "cannot read the token file")
	}
	if token = strings.TrimSpace(string(content)); len(token) < shortestToken {
		return "", false, fault.New(fault.Invalid, "cannot use the token file %q: a token has at least %d characters", s.TokenFile, shortestToken)
	}
	return token, false, nil
}

// guard lets in only clients with the token, and no browser that another site's
// page controls: a name bound to this address has the wrong Host, a page of another
// site the wrong Origin.
func (s *server) guard(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.AnyAddress && !loopback(hostOf(r.Host)) {
			turnAway(w, "this Host is not served here", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			from, err := url.Parse(origin)
			if err != nil || !loopback(from.Hostname()) || (from.Scheme != "http" && from.Scheme != "https") {
				turnAway(w, "this Origin is not welcome here", http.StatusForbidden)
				return
			}
		}
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="litterbox"`)
			turnAway(w, "a bearer token is needed: litterbox mcp --http prints it", http.StatusUnauthorized)
			return
		}
		if !welcome(r.Context()) {
			turnAway(w, "too many connections are open", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path != endpoint {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf is a Host header without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// loopback reports whether a name means this machine and no other.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// route serves both kinds of the protocol on one endpoint: revisions with
// sessions, and those without, in which every call names its session.
func (s *server) route() http.Handler {
	bySession := &sessionsOf{server: s, known: map[*sdk.ServerSession]*session{}}
	stateful := s.newServer(bySession.find, false)
	stateless := s.newServer(s.byHandle, true)
	sessions := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return stateful }, &sdk.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxMessage, SessionTimeout: idleSession, DisableLocalhostProtection: true,
	})
	without := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return stateless }, &sdk.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true, DisableLocalhostProtection: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Revisions are dates: they compare as text.
		if r.Header.Get(versionHeader) >= statelessRevision {
			without.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
}

// sessionsOf finds sessions by the protocol's own sessions.
type sessionsOf struct {
	server *server
	mu     sync.Mutex
	known  map[*sdk.ServerSession]*session
}

func (o *sessionsOf) find(request *sdk.CallToolRequest, _ string, _ bool) (*session, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := request.Session
	if s := o.known[of]; s != nil && o.server.sessions.get(s.id) != nil {
		return s, nil
	}
	s, err := o.server.sessions.open(o.server.Engine)
	if err != nil {
		return nil, err
	}
	_, watched := o.known[of]
	o.known[of] = s
	if !watched {
		go func() {
			_ = of.Wait() // how it ended does not matter
			o.mu.Lock()
			s := o.known[of]
			delete(o.known, of)
			o.mu.Unlock()
			o.server.sessions.end(s)
		}()
	}
	return s, nil
}

// byHandle finds the session that a call names; create and open begin one.
func (s *server) byHandle(_ *sdk.CallToolRequest, handle string, begins bool) (*session, error) {
	if handle != "" {
		if known := s.sessions.get(handle); known != nil {
			return known, nil
		}
		return nil, fault.New(fault.NotFound, "this session has ended, or there was none").
			WithHint("sandbox-open the sandbox again and pass the session that it returns")
	}
	if !begins {
		return nil, fault.New(fault.Invalid, "session is missing: this protocol revision has none of its own").
			WithHint("pass from sandbox-create or sandbox-open")
	}
	return s.sessions.open(s.Engine)
}
