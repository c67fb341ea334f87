package egress_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func policy(t testing.TB, allow, deny string) *egress.Policy {
	t.Helper()
	return &egress.Policy{Default: egress.Deny, Allow: rules(t, split(allow)...), Deny: rules(t, split(deny)...)}
}

// split takes a list of rules apart at "; ".
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, "; ")
}

func host(name string, port uint16, protocol string) egress.Target {
	return egress.Target{Host: name, Port: port, Protocol: protocol}
}

func addr(text string, port uint16, protocol string) egress.Target {
	return egress.Target{Addr: netip.MustParseAddr(text), Port: port, Protocol: protocol}
}

func at(t egress.Target, text string) egress.Target {
	t.Addr = netip.MustParseAddr(text)
	return t
}

func own(t egress.Target) egress.Target {
	t.Own = true
	return t
}

func near(t egress.Target, network string) egress.Target {
	t.Link = netip.MustParsePrefix(network)
	return t
}

func broadcast(t egress.Target) egress.Target {
	t.Broadcast = true
	return near(t, "93.184.215.0/24")
}

func request(t egress.Target, method, path string) egress.Target {
	t.Method, t.Path = method, path
	return t
}

func TestDecide(t *testing.T) {
	const any, public = "", "93.184.215.14"
	for _, c := range []struct {
		name, allow, deny string
		target            egress.Target
		want              bool
	}{
		{"nothing allows nothing", "", "", host("a.example", 443, any), false},
		{"exact host", "a.example", "", host("a.example", 443, any), true},
		{"port 80 by default", "a.example", "", host("a.example", 80, any), true},
		{"no other port", "a.example", "", host("a.example", 22, any), false},
		{"no other host", "a.example", "", host("b.a.example", 443, any), false},
		{"no suffix", "a.example", "", host("xa.example", 443, any), false},
		{"case and dot", "a.example", "", host("A.Example.", 443, any), true},
		{"wildcard below", "*.a.example", "", host("x.y.a.example", 443, any), true},
		{"wildcard not itself", "*.a.example", "", host("a.example", 443, any), false},
		{"wildcard not beside", "*.a.example", "", host("xa.example", 443, any), false},
		{"every port", "a.example:*", "", host("a.example", 5432, "tcp"), true},
		{"one port", "a.example:22", "", host("a.example", 443, any), false},
		{"server first", "a.example:22", "", host("a.example", 22, "tcp"), true},
		{"opaque on the web's port", "a.example", "", host("a.example", 443, "tcp"), false},
		{"opaque with tcp", "tcp://a.example:443", "", host("a.example", 443, "tcp"), true},
		{"no udp", "a.example:*", "", host("a.example", 443, "udp"), false},
		{"udp when said", "udp://a.example:443", "", host("a.example", 443, "udp"), true},
		{"udp is not a tcp", "udp://a.example:443", "", host("a.example", 443, "https"), false},
		{"https only", "https://a.example:8443", "", host("a.example", 8443, "https"), true},
		{"https is not opaque", "https://a.example:8443", "", host("a.example", 8443, "tcp"), false},
		{"https is not http", "https://a.example", "", host("a.example", 443, "http"), false},
		{"https default port", "https://a.example", "", host("a.example", 80, "https"), false},
		{"http default port", "http://a.example", "", host("a.example", 80, "http"), true},
		{"method", "GET http://a.example", "", request(host("a.example", 80, "http"), "GET", "/x"), true},
		{"other method", "GET http://a.example", "", request(host("a.example", 80, "http"), "POST", "/x"), false},
		{"case of a method", "GET http://a.example", "", request(host("a.example", 80, "http"), "get", "/x"), false},
		{"unknown method", "GET https://a.example", "", host("a.example", 443, "https"), false},
		{"path", "http://a.example/me/", "", request(host("a.example", 80, "http"), "PUT", "/me/x?q"), true},
		{"path itself", "http://a.example/me", "", request(host("a.example", 80, "http"), "PUT", "/me?q"), true},
		{"path in segments", "http://a.example/me", "", request(host("a.example", 80, "http"), "PUT", "/meow"), false},
		{"path escaped", "http://a.example/me", "", request(host("a.example", 80, "http"), "PUT", "/%6de"), true},
		{"path climbing", "http://a.example/me/", "", request(host("a.example", 80, "http"), "PUT", "/me/../you"), false},
		{"path climbing escaped", "http://a.example/me/", "", request(host("a.example", 80, "http"), "PUT", "/me/%2e%2E/you"), false},
		{"path in UTF-8", "http://a.example/me/", "", request(host("a.example", 80, "http"), "PUT", "/me/%C3%A9"), true},
		{"path climbing by a slash that is too long", "http://a.example/me/", "", request(host("a.example", 80, "http"), "PUT", "/me/..%c0%afyou"), false},
		{"path climbing by dots that are too long", "http://a.example/me/", "", request(host("a.example", 80, "http"), "PUT", "/me/%c0%ae%c0%ae/you"), false},
		{"path not in UTF-8", "http://a.example/me/", "", request(host("a.example", 80, "http"), "PUT", "/me/%ff"), false},
		{"deny a path that is not in UTF-8", "http://a.example", "http://a.example/x", request(host("a.example", 80, "http"), "GET", "/y%c0%afx"), false},
		{"path climbing by slash", "http://a.example/me/", "", request(host("a.example", 80, "http"), "PUT", "/me/..%2fyou"), false},

		{"deny wins", "a.example; *.example", "a.example", host("a.example", 443, any), false},
		{"deny means every port", "a.example:*", "a.example", host("a.example", 8080, "tcp"), false},
		{"deny one port", "a.example:*", "a.example:25", host("a.example", 26, "tcp"), true},
		{"deny below", "*.example", "*.b.example", host("a.b.example", 443, any), false},
		{"deny a request", "http://a.example", "POST http://a.example", request(host("a.example", 80, "http"), "post", "/"), false},
		{"deny another request", "http://a.example", "POST http://a.example", request(host("a.example", 80, "http"), "GET", "/"), true},
		{"deny a path", "http://a.example", "http://a.example/x", request(host("a.example", 80, "http"), "GET", "/x/y"), false},
		{"deny an odd path", "http://a.example", "http://a.example/x", request(host("a.example", 80, "http"), "GET", "/y/../x"), false},
		{"deny a matrix path", "http://a.example", "http://a.example/x/", request(host("a.example", 80, "http"), "GET", "/x;a/y"), false},
		{"deny what TLS hides", "a.example", "POST https://a.example", host("a.example", 443, "https"), false},
		{"deny what nobody looks at", "tcp://a.example:443", "POST https://a.example", host("a.example", 443, "tcp"), false},
		{"deny udp only", "a.example", "udp://a.example:443", host("a.example", 443, "https"), true},
		{"deny a network behind a name", "a.example", "93.184.0.0/16", at(host("a.example", 443, "https"), public), false},
		{"a preset nobody expanded allows nothing", "preset:npm", "", host("registry.npmjs.org", 443, any), false},
		{"a preset nobody expanded denies everything", "a.example", "preset:npm", host("a.example", 443, any), false},

		{"address", public, "", addr(public, 443, "tcp"), true},
		{"address and port", "93.184.215.14:22", "", addr(public, 443, any), false},
		{"address by name only", "a.example", "", addr(public, 443, any), false},
		{"mapped address", public, "", addr("::ffff:93.184.215.14", 443, any), true},
		{"mapped address denied", "93.184.0.0/16; ::/0", "93.184.215.14", addr("::ffff:93.184.215.14", 443, any), false},
		{"address as a name", public, "", host(public, 443, any), true},
		{"network", "93.184.0.0/16:*", "", addr(public, 9, "tcp"), true},
		{"other family", "0.0.0.0/0", "", addr("2606:2800:21f::1", 443, any), false},
		{"private by itself", "10.1.2.3:5432", "", addr("10.1.2.3", 5432, "tcp"), true},
		{"private by its network", "10.1.0.0/16:5432", "", addr("10.1.2.3", 5432, "tcp"), true},
		{"private by the internet", "0.0.0.0/0:*; [::/0]:*", "", addr("10.1.2.3", 443, any), false},
		{"loopback by the internet", "0.0.0.0/0", "", addr("127.0.0.1", 80, any), false},
		{"loopback by itself", "127.0.0.1:5432", "", addr("127.0.0.1", 5432, "tcp"), true},
		{"metadata by its network", "169.254.0.0/16", "", addr("169.254.169.254", 80, any), false},
		{"metadata by itself", "169.254.169.254", "", addr("169.254.169.254", 80, any), true},
		{"metadata over translation", "64:ff9b::/96", "", addr("64:ff9b::a9fe:a9fe", 80, any), false},
		{"public over translation", "64:ff9b::/96", "", addr("64:ff9b::5db8:d70e", 80, any), true},
		{"own address by its network", "192.168.0.0/16", "", own(addr("192.168.1.5", 443, any)), false},
		{"own address by itself", "192.168.1.5", "", own(addr("192.168.1.5", 443, any)), true},
		{"own public address", "93.184.0.0/16", "", own(addr(public, 443, any)), false},

		{"beside this machine by the internet", "0.0.0.0/0:*", "", near(addr(public, 443, "tcp"), "93.184.215.0/24"), false},
		{"beside this machine by a wider network", "93.184.0.0/16:*", "", near(addr(public, 443, "tcp"), "93.184.215.0/24"), false},
		{"beside this machine by its network", "93.184.215.0/24:*", "", near(addr(public, 443, "tcp"), "93.184.215.0/24"), true},
		{"beside this machine by itself", public, "", near(addr(public, 443, "tcp"), "93.184.215.0/24"), true},
		{"name to a neighbour", "a.example", "", near(at(host("a.example", 443, "https"), public), "93.184.215.0/24"), false},
		{"name to a neighbour, allowed", "a.example; 93.184.215.14", "", near(at(host("a.example", 443, "https"), public), "93.184.215.0/24"), true},
		{"translated neighbour by its network", "64:ff9b::/96", "", near(addr("64:ff9b::5db8:d70e", 443, "tcp"), "93.184.215.0/24"), false},
		{"broadcast by itself", "udp://93.184.215.255:9", "", broadcast(addr("93.184.215.255", 9, "udp")), false},
		{"broadcast by its network", "udp://93.184.215.0/24:9", "", broadcast(addr("93.184.215.255", 9, "udp")), false},
		{"name to broadcast", "udp://a.example:9; udp://93.184.215.255:9", "", broadcast(at(host("a.example", 9, "udp"), "93.184.215.255")), false},

		{"deny what is translated", "64:ff9b::/96", "93.184.0.0/16", addr("64:ff9b::5db8:d70e", 443, any), false},
		{"deny what is tunnelled", "2002::/16", public, addr("2002:5db8:d70e::1", 443, any), false},
		{"deny what has a Teredo address", "2001::/32", public, addr("2001:0:102:304:0:0:a247:28f1", 443, any), false},
		{"private over 6to4", "2002::/16", "", addr("2002:a01:203::1", 443, any), false},
		{"private over 6to4 by itself", "2002:a01:203::1", "", addr("2002:a01:203::1", 443, any), true},
		{"private over a network's translation", "64:ff9b:1::/48", "", addr("64:ff9b:1::a00:1", 443, any), false},
		{"private over a network's short translation", "64:ff9b:1::/48", "", addr("64:ff9b:1:a9fe:a9:fe00::", 443, any), false},
		{"public over a network's translation", "64:ff9b:1::/48", "", addr("64:ff9b:1::5db8:d70e", 443, any), true},
		{"metadata over ISATAP", "[2606:2800::/32]:*", "", addr("2606:2800::5efe:a9fe:a9fe", 443, any), false},

		{"name to public", "a.example", "", at(host("a.example", 443, "https"), public), true},
		{"name to private", "a.example", "", at(host("a.example", 443, "https"), "10.1.2.3"), false},
		{"name to private, mapped", "a.example", "", at(host("a.example", 443, "https"), "::ffff:10.1.2.3"), false},
		{"name to private, allowed", "a.example; 10.1.2.3", "", at(host("a.example", 443, "https"), "10.1.2.3"), true},
		{"name to private, other port", "a.example; 10.1.2.3:5432", "", at(host("a.example", 443, "https"), "10.1.2.3"), false},
		{"address does not allow the name", "10.1.2.3", "", at(host("a.example", 443, "https"), "10.1.2.3"), false},
		{"name to this machine", "a.example", "", own(at(host("a.example", 443, "https"), public)), false},

		{"no port", "a.example:*", "", host("a.example", 0, any), false},
		{"unknown protocol", "a.example", "", host("a.example", 443, "HTTP"), false},
		{"no target", "a.example", "", egress.Target{Port: 443}, false},
		{"name with NUL", "*.example", "", host("evil\x00.example", 443, any), false},
		{"zone", "[fe80::/10]:*", "", addr("fe80::1%eth0", 443, any), false},
	} {
		verdict := policy(t, c.allow, c.deny).Decide(c.target)
		if verdict.Allowed != c.want || verdict.Why == "" {
			t.Errorf("%s: %+v", c.name, verdict)
		}
	}
	if verdict := (*egress.Policy)(nil).Decide(host("a.example", 443, "")); verdict.Allowed {
		t.Error("no policy allowed something")
	}
}

func TestDecideOpenly(t *testing.T) {
	open := &egress.Policy{Default: egress.Allow}
	limited := &egress.Policy{Default: egress.Allow, Deny: rules(t, "telemetry.example", "*.bad.example:443")}
	for _, c := range []struct {
		name   string
		policy *egress.Policy
		target egress.Target
		want   bool
	}{
		{"anything", open, host("a.example", 443, "tcp"), true},
		{"any address", open, addr("93.184.215.14", 25, "tcp"), true},
		{"private", open, addr("10.1.2.3", 443, "tcp"), false},
		{"beside this machine", open, near(addr("93.184.215.14", 443, "tcp"), "93.184.215.0/24"), false},
		{"a name beside this machine", open, near(at(host("a.example", 443, "tcp"), "93.184.215.14"), "93.184.215.0/24"), false},
		{"broadcast", open, broadcast(addr("93.184.215.255", 9, "udp")), false},
		{"name to loopback", open, at(host("a.example", 443, "tcp"), "127.0.0.1"), false},
		{"not an odd name", open, host("0x7f.1", 443, "tcp"), false},
		{"denied", limited, host("telemetry.example", 9, "tcp"), false},
		{"not denied", limited, host("a.example", 443, "https"), true},
		{"where a denied one could hide", limited, host("a.example", 443, "tcp"), false},
		{"elsewhere", limited, host("a.example", 22, "tcp"), true},
	} {
		if verdict := c.policy.Decide(c.target); verdict.Allowed != c.want {
			t.Errorf("%s: %+v", c.name, verdict)
		}
	}
}

func TestDecideName(t *testing.T) {
	p := policy(t, "a.example; *.b.example:22; udp://time.example:123; 10.1.2.3", "no.b.example; half.b.example:80")
	got := map[string]bool{}
	for _, name := range []string{"A.example.", "x.b.example", "b.example", "no.b.example", "half.b.example", "time.example", "10.1.2.3", "other.example", "", "a\x00.example"} {
		got[name] = p.DecideName(name).Allowed
	}
	want := map[string]bool{
		"A.example.": true, "x.b.example": true, "b.example": false, "no.b.example": false, "half.b.example": true,
		"time.example": true, "10.1.2.3": false, "other.example": false, "": false, "a\x00.example": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestExpand(t *testing.T) {
	p := policy(t, "a.example; preset:go", "preset:bad")
	got, err := p.Expand(func(name string) ([]string, error) {
		return map[string][]string{"go": {"https://proxy.example"}, "bad": {"bad.example"}}[name], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if verdict := got.Decide(host("proxy.example", 443, "https")); verdict.Rule != "https://proxy.example (preset:go)" || !verdict.Allowed {
		t.Errorf("the preset decided %+v", verdict)
	}
	if got.Decide(host("bad.example", 443, "")).Allowed || !got.Decide(host("a.example", 443, "")).Allowed {
		t.Error("the other rules changed")
	}
	for _, inner := range []string{"preset:other", "a b"} {
		if _, err := p.Expand(func(string) ([]string, error) { return []string{inner}, nil }); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q inside a preset: %v", inner, err)
		}
	}
}

// A denied target stays denied however it is spelled, and an allowed one is
// allowed under its canonical spelling too.
func FuzzDecide(f *testing.F) {
	for _, seed := range []string{"telemetry.example", "TELEMETRY.example.", "telemetry。example", "ｔelemetry.example", "93.184.215.14", "::ffff:93.184.215.14", "0x5d.0xb8.215.14", "telemetry.example\x00.ok.example", "bücher.example", "xn--bcher-kva.example", "user@telemetry.example", "%74elemetry.example", "telemetry.example:443"} {
		f.Add(seed, uint16(443))
	}
	denied := policy(f, "0.0.0.0/0:*; [::/0]:*", "telemetry.example; *.telemetry.example; xn--bcher-kva.example; 93.184.215.14")
	denied.Default = egress.Allow
	names := policy(f, "ok.example; *.ok.example", "")
	f.Fuzz(func(t *testing.T, name string, port uint16) {
		target := host(name, port, "")
		verdict := denied.Decide(target)
		canonical, err := egress.CanonicalHost(name)
		if err == nil {
			if again, err := egress.CanonicalHost(canonical); err != nil || again != canonical {
				t.Fatalf("%q became %q became %q (%v)", name, canonical, again, err)
			}
			if is := denied.Decide(host(canonical, port, "")); is.Allowed != verdict.Allowed {
				t.Fatalf("%q: %+v, but %q: %+v", name, verdict, canonical, is)
			}
			lower := strings.ToLower(canonical)
			if verdict.Allowed && (lower == "telemetry.example" || strings.HasSuffix(lower, ".telemetry.example")) {
				t.Fatalf("%q was allowed", name)
			}
			for _, spelling := range []string{strings.ToUpper(canonical), canonical + ".", strings.ReplaceAll(canonical, ".", "。")} {
				if is := denied.Decide(host(spelling, port, "")); is.Allowed != verdict.Allowed {
					t.Fatalf("%q: %+v, but %q: %+v", name, verdict, spelling, is)
				}
			}
		} else if _, parse := netip.ParseAddr(name); parse != nil && verdict.Allowed {
			t.Fatalf("%q is not a host (%v) and was allowed", name, err)
		}
		if names.Decide(target).Allowed && canonical != "ok.example" && !strings.HasSuffix(canonical, ".ok.example") {
			t.Fatalf("%q passed as %q", name, canonical)
		}
		if !names.DecideName(name).Allowed && names.Decide(target).Allowed {
			t.Fatalf("%q can be reached and not resolved", name)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	for _, seed := range []string{"GET,HEAD https://a.example/x", "[2001:db8::/32]:*", "*.a.example:22", "10.0.0.0/8:1", "preset:go", "udp://a:1", "http://1.2.3.4/8/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := egress.ParseRule(text)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		again, err := egress.ParseRule(rule.String())
		if err != nil || again.String() != rule.String() {
			t.Fatalf("%q became %q became %q (%v)", text, rule, again, err)
		}
	})
}

func FuzzCleanPath(f *testing.F) {
	for _, seed := range []string{"/a/b", "/%61/./b", "/a//b", "/a;x/b", "/%2e%2e/", "*", "/a?b=/../", "/%25"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		clean, ok := egress.CleanPath(target)
		if !ok {
			return
		}
		if again, ok := egress.CleanPath(clean); !ok || again != clean {
			t.Fatalf("%q became %q became %q", target, clean, again)
		}
		for _, trap := range []string{"//", "/../", "/./", "\\", ";", "%2f", "%2F", "%5c", "%00", "?"} {
			if strings.Contains(clean+"/", trap) && !strings.HasSuffix(clean, "/") {
				t.Fatalf("%q became %q", target, clean)
			}
		}
	})
}
