package clients_test

import (
	"strings"
	"testing"
)

// Secrets of a sandbox in another machine stay here: its programs trust the
// authority that its keeper sends, from the first start on, after a rule that needs
// it and after a stop.
func TestSecretsInAnotherMachine(t *testing.T) {
	t.Parallel()
	h, site, values := secretsHost(t, "machine")
	other := &told{}
	webSite(t, outside.Host("machine-later.outside.example"), other)
	h.Must("create", "box", "--driver", "child")
	ask := func(when string) {
		t.Helper()
		for variable, value := range values {
			site.forget()
			got := h.InsideShell("box", `curl -sSf -m 60 -H "X-Key: $`+variable+`" https://machine.outside.example/`)
			if got.Code != 0 || !site.has("X-Key: "+value) {
				t.Errorf("%s, with %s: %d %s%s; the host was told %q", when, variable, got.Code, got.Stdout, got.Stderr, site.all)
			}
			if inside := h.InsideShell("box", `printf %s "$`+variable+`"`).Stdout; inside == "" || inside == value || strings.Contains(got.Stdout, value) {
				t.Errorf("%s: %s is %q inside, and the answer %q", when, variable, inside, got.Stdout)
			}
		}
	}
	ask("after create")
	h.Must("allow", "box", "GET https://machine-later.outside.example/fine")
	if got := h.InsideShell("box", "curl -sSf -m 60 https://machine-later.outside.example/fine"); got.Code != 0 || !other.has("GET /fine") {
		t.Errorf("by a rule on paths: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	h.Must("stop", "box")
	h.Must("start", "box")
	ask("after a stop")
	// What programs trust cannot be changed inside.
	if got := h.InsideShell("box", `echo broken >"$SSL_CERT_FILE"`); got.Code == 0 {
		t.Error("the roots can be written inside")
	}
}

// A sandbox that needs no authority of its own at first learns to trust one while
// it runs.
func TestRuleOnPathsInAnotherMachine(t *testing.T) {
	t.Parallel()
	site := &told{}
	webSite(t, outside.Host("machine-rule.outside.example"), site)
	h := newHost(t).With("SSL_CERT_FILE=" + outside.CA)
	h.Must("create", "box", "--driver", "child")
	h.Must("exec", "box", "--", "true")
	h.Must("allow", "box", "GET https://machine-rule.outside.example/fine")
	if got := h.InsideShell("box", "curl -sSf -m 60 https://machine-rule.outside.example/fine"); got.Code != 0 || !site.has("GET /fine") {
		t.Errorf("%d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := h.InsideShell("box", "curl -sSf -m 60 https://machine-rule.outside.example/other"); got.Code == 0 || site.has("GET /other") {
		t.Errorf("a path that is not allowed: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}
