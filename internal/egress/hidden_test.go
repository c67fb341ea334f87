package egress_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// Where everything is allowed by default, a denied host is not reached by its
// address either: a connection goes where the name that it asks for leads.
func TestDeniedHostByItsAddress(t *testing.T) {
	const denied, other = "93.184.215.66", internet
	for name, c := range map[string]struct {
		say  string // in the clear; TLS with sni when empty
		sni  string
		port uint16
		deny string // telemetry.com unless set
		want string // the reason of the refusal; empty when it passes
		dial string // what is dialled then
	}{
		"no server name":            {port: 443, want: "names no host"},
		"no server name, no denied": {port: 443, deny: "10.0.0.0/8", dial: denied + ":443"},
		"its own name":              {port: 443, sni: "telemetry.com", want: "telemetry.com"},
		"another name":              {port: 443, sni: "example.com", dial: other + ":443"},
		"another name in capitals":  {port: 443, sni: "EXAMPLE.com", dial: other + ":443"},
		"a name that leads nowhere": {port: 443, sni: "nowhere.com", want: "cannot resolve"},
		"a name that leads inside":  {port: 443, sni: "inside.com", want: "private network"},
		"a denied tenant":           {port: 443, deny: "a.com; 93.184.215.14", sni: "example.com", want: "denied by the rule 93.184.215.14"},
		"Host is the address":       {port: 80, say: "GET / HTTP/1.1\r\nHost: " + denied + "\r\n\r\n", want: "names no host"},
		"Host is another address":   {port: 80, say: "GET / HTTP/1.1\r\nHost: " + other + "\r\n\r\n", want: "names no host"},
		"another Host":              {port: 80, say: "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", dial: other + ":80"},
		"its own Host":              {port: 80, say: "GET / HTTP/1.1\r\nHost: telemetry.com\r\n\r\n", want: "telemetry.com"},
		"another port":              {port: 8443, say: "x", want: "stands behind the address"},
		"a port that is not denied": {port: 8443, deny: "telemetry.com:443", say: "x", dial: denied + ":8443"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, egress.Options{})
			if c.deny == "" {
				c.deny = "telemetry.com"
			}
			w.policy.Store(&egress.Policy{Default: egress.Allow, Deny: rules(t, split(c.deny)...)})
			w.host("telemetry.com", denied)
			w.host("example.com", other)
			w.host("inside.com", "10.1.2.3")
			for _, addr := range []string{denied, other} {
				w.web(addr+":443", true, hello)
				w.web(addr+":80", false, hello)
				w.serve(addr+":8443", echo)
			}
			raw := w.open(netip.AddrPortFrom(netip.MustParseAddr(denied), c.port))
			if c.say == "" {
				_ = tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: c.sni}).Handshake() // what was dialled tells
			} else if _, err := io.WriteString(raw, c.say); err != nil && c.want == "" {
				t.Fatal(err) // what is refused may be reset before it speaks
			}
			if c.want == "" {
				w.why(egress.Allowed)
				if diff := cmp.Diff([]string{c.dial}, w.dials()); diff != "" {
					t.Errorf("dialled (-want +got):\n%s", diff)
				}
				return
			}
			verdict := egress.Denied
			if strings.HasPrefix(c.want, "cannot") {
				verdict = egress.Failed
			}
			wantWhy(t, w.why(verdict), c.want)
			if dials := w.dials(); len(dials) > 0 {
				t.Errorf("%v was dialled", dials)
			}
		})
	}
}

// A revision that first denies a name ends what had gone to an address without
// one.
func TestNamelessEndsWithANewDenial(t *testing.T) {
	w := newWorld(t, egress.Options{})
	w.policy.Store(&egress.Policy{Default: egress.Allow, Deny: rules(t, "10.0.0.0/8")})
	w.web(internet+":443", true, hello)
	conn := tls.Client(w.open(netip.MustParseAddrPort(internet+":443")), &tls.Config{InsecureSkipVerify: true})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	w.policy.Store(&egress.Policy{Default: egress.Allow, Deny: rules(t, "telemetry.com")})
	w.proxy.Recheck()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("instead of a reset came %v", err)
	}
}
