package egress_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func TestParseRule(t *testing.T) {
	for text, want := range map[string]string{
		"api.example.com":                  "api.example.com",
		"  API.Example.COM. ":              "api.example.com",
		"*.example.org:443":                "*.example.org:443",
		"github.com:22":                    "github.com:22",
		"example.com:*":                    "example.com:*",
		"bücher.example":                   "xn--bcher-kva.example",
		"XN--BCHER-KVA.example":            "xn--bcher-kva.example",
		"*.bücher.example":                 "*.xn--bcher-kva.example",
		"my_bucket.example":                "my_bucket.example",
		"10.1.2.3:5432":                    "10.1.2.3:5432",
		"10.1.2.3/32":                      "10.1.2.3",
		"10.0.0.0/8":                       "10.0.0.0/8",
		"10.0.0.0/8:*":                     "10.0.0.0/8:*",
		"::ffff:10.1.2.3":                  "10.1.2.3",
		"[::ffff:10.1.2.3]:80":             "10.1.2.3:80",
		"::ffff:10.0.0.0/104":              "10.0.0.0/8",
		"2001:DB8:0::1":                    "2001:db8::1",
		"[2001:db8::1]":                    "2001:db8::1",
		"[2001:db8::1]:443":                "[2001:db8::1]:443",
		"2001:db8::/32":                    "2001:db8::/32",
		"[2001:db8::/32]:*":                "[2001:db8::/32]:*",
		"tcp://ssh.example.com:443":        "tcp://ssh.example.com:443",
		"TCP://db.example.com":             "tcp://db.example.com",
		"udp://time.example.com:123":       "udp://time.example.com:123",
		"https://example.com":              "https://example.com",
		"https://example.com/":             "https://example.com",
		"http://example.com:8080/a%7Eb/":   "http://example.com:8080/a~b/",
		"https://[2001:db8::1]/x":          "https://[2001:db8::1]/x",
		"head,get  https://example.com/me": "GET,HEAD https://example.com/me",
		"GET,GET https://example.com":      "GET https://example.com",
		"preset:npm":                       "preset:npm",
	} {
		rule, err := egress.ParseRule(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if rule.String() != want {
			t.Errorf("%q became %q, want %q", text, rule, want)
		}
		again, err := egress.ParseRule(rule.String())
		if err != nil || !again.Equal(rule) {
			t.Errorf("%q is not a fixed point: %q, %v", rule, again, err)
		}
	}
}

func TestStandsForNames(t *testing.T) {
	for text, want := range map[string]bool{
		"198.18.7.7:2222": true, "198.19.0.0/16": true, "[fd6c:6974:7465:7262::1]:22": true, "tcp://198.18.7.7:22": true,
		"198.17.255.255": false, "198.0.0.0/8": false, "fd6c:6974:7465:7263::1": false, "example.com": false, "preset:npm": false,
	} {
		rule, err := egress.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := rule.StandsForNames(); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

func TestParseRuleRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "write a host",
		"*":                                  `default = "allow"`,
		"*:443":                              `default = "allow"`,
		".example.com":                       "*.example.com",
		"*.*.example.com":                    "*.example.org",
		"a.*.example.com":                    "*.example.org",
		"ex*mple.com":                        "*.example.org",
		"example.com:0":                      "1 to 65535",
		"example.com:065":                    "1 to 65535",
		"example.com:70000":                  "1 to 65535",
		"example.com:":                       "1 to 65535",
		"example.com:80-90":                  "1 to 65535",
		"example.com/path":                   "https://example.com/path",
		"ftp://example.com":                  "use tcp://",
		"git@github.com":                     "github.com:22",
		"git@github.com:me/it":               "github.com:22",
		"https://u:p@example.com":            "write the host alone",
		"https://example.com/a/*":            "write https://example.com/a/",
		"https://example.com/a/../b":         "without //",
		"https://example.com/a%2fb":          "without //",
		"https://example.com/?q":             "leave out",
		"GET example.com":                    "GET https://example.com",
		"CONNECT https://a.example":          "GET,HEAD",
		"G@T https://a.example":              "GET,HEAD",
		"udp://a.example":                    "udp://a.example:123",
		"10.1.2.3/8":                         "10.0.0.0/8",
		"10.0.0.0/33":                        "10.0.0.0/8",
		"10.0.0.0/08":                        "10.0.0.0/8",
		"http://10.0.0.0/8":                  "10.0.0.0/8:443",
		"[10.1.2.3]:80":                      "10.1.2.3:80",
		"[2001:db8::]/32":                    "[2001:db8::/32]",
		"[2001:db8::1":                       "[2001:db8::1]:443",
		"2001:db8::1%eth0":                   "[2001:db8::1]:443",
		"::ffff:0:0/90":                      "IPv4 network",
		"a:b:c":                              "host:port",
		"127.1":                              "host name",
		"0x7f.0.0.1":                         "host name",
		"0x7f000001":                         "host name",
		"2130706433":                         "host name",
		"017700000001":                       "host name",
		"127.0.0.01":                         "host name",
		"example.0xa":                        "host name",
		"exa mple.com":                       "GET https://mple.com",
		"exa\x00mple.com":                    "host name",
		"exa%6dple.com":                      "host name",
		"a..example":                         "host name",
		"preset:":                            "litterbox network presets",
		"preset:NPM":                         "litterbox network presets",
		strings.Repeat("a", 64) + ".example": "host name",
		strings.Repeat("abcdefgh.", 30) + "example": "host name",
		strings.Repeat("a", 3000):                   "",
	} {
		rule, err := egress.ParseRule(text)
		if err == nil {
			t.Errorf("%q became %q", text, rule)
			continue
		}
		if fault.KindOf(err) != fault.Invalid || !strings.HasPrefix(err.Error(), "cannot use the network rule ") || !strings.Contains(fault.HintOf(err), want) {
			t.Errorf("%q: %v (hint %q), want a hint with %q", text, err, fault.HintOf(err), want)
		}
	}
}

func TestRuleJSON(t *testing.T) {
	policy := egress.Policy{Default: egress.Deny, Allow: rules(t, "api.example.com", "GET https://a.example/x"), Revision: 3}
	policy.Allow[0].From = "preset:go"
	data, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	var again egress.Policy
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(policy, again); diff != "" {
		t.Errorf("the policy changed on its way (-want +got):\n%s", diff)
	}
	var plain []egress.Rule
	if err := json.Unmarshal([]byte(`["a.example:22"]`), &plain); err != nil || plain[0].String() != "a.example:22" {
		t.Errorf("a text became %v, %v", plain, err)
	}
	for _, bad := range []string{`["*"]`, `[7]`, `[{"rule":"a b"}]`} {
		if err := json.Unmarshal([]byte(bad), &plain); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func rules(t testing.TB, texts ...string) []egress.Rule {
	t.Helper()
	var all []egress.Rule
	for _, text := range texts {
		rule, err := egress.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rule)
	}
	return all
}
