package secret_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

func TestSources(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"keyring:anthropic", "env:API_KEY", "file:/etc/x", "file:~/x", "age:a.b-c_d", `command:["pass","show","x y"]`} {
		source, err := secret.ParseSource(text)
		if err != nil || source.String() != text {
			t.Errorf("%q: %q (%v)", text, source, err)
		}
	}
	for _, text := range []string{"", "keyring", "keyring:", "keyring:a/b", "env:A-B", "env:1A", "file:x", "file:../x", "command:pass show x", "command:[]", `command:[""]`, "vault:x", "keyring:a\nb"} {
		if source, err := secret.ParseSource(text); err == nil {
			t.Errorf("%q: %+v", text, source)
		}
	}
	for _, text := range []string{"sk-ant-api03-thevalueitself", "hunter22:hunter22"} {
		if _, err := secret.ParseSource(text); err == nil || strings.Contains(err.Error(), text) {
			t.Errorf("an error shows what may be the value: %v", err)
		}
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"api.example.com": "", "API.Example.com.": "api.example.com", "api.example.com:443": "api.example.com", "https://api.example.com/": "api.example.com",
		"api.example.com:8443": "", "http://localhost:4000": "", "http://x.example:80": "http://x.example", "*.example.com": "", "127.0.0.1:9000": "",
		"[2001:db8::1]:8443": "", "2001:db8::1": "", "bücher.example": "xn--bcher-kva.example",
	} {
		if want == "" {
			want = text
		}
		host, err := secret.ParseHost(text)
		if err != nil || host.String() != want {
			t.Errorf("%q: %q, want %q (%v)", text, host, want, err)
		}
		if again, err := secret.ParseHost(host.String()); err != nil || again != host {
			t.Errorf("%q read again: %v (%v)", host, again, err)
		}
	}
	for _, text := range []string{"", "*", "*.com", "example.com/path", "user@example.com", "ftp://example.com", "example.com:0", "example.com:x", "exa mple.com", "0x7f.1", "fe80::1%eth0"} {
		if host, err := secret.ParseHost(text); err == nil {
			t.Errorf("%q: %v", text, host)
		}
	}
	for _, c := range []struct {
		host, name string
		port       uint16
		plain      bool
		want       bool
	}{
		{"api.example.com", "api.example.com", 443, false, true},
		{"api.example.com", "api.example.com", 80, true, false},
		{"api.example.com", "api.example.com", 8443, false, false},
		{"api.example.com", "x.api.example.com", 443, false, false},
		{"api.example.com", "api.example.com.evil.example", 443, false, false},
		{"api.example.com", "api-example.com", 443, false, false},
		{"*.example.com", "a.b.example.com", 443, false, true},
		{"*.example.com", "example.com", 443, false, false},
		{"*.example.com", "evilexample.com", 443, false, false},
		{"http://localhost:4000", "localhost", 4000, true, true},
		{"http://localhost:4000", "localhost", 4000, false, false},
	} {
		host, err := secret.ParseHost(c.host)
		if err != nil {
			t.Fatal(err)
		}
		if got := host.Matches(c.name, c.port, c.plain); got != c.want {
			t.Errorf("%s matches %s:%d (plain: %t): %t", c.host, c.name, c.port, c.plain, got)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	claims := "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSIsImV4cCI6MjAwMDAwMDAwMH0."
	for value, want := range map[string]string{
		"sk-ant-api03-" + strings.Repeat("aB3_-", 18): `^sk-ant-api03-[0-9a-zA-Z]{90}$`,
		"ghp_0123456789abcdefghijABCDEFGHIJ012345":    `^ghp_[0-9a-zA-Z]{36}$`,
		"0123456789abcdef0123456789abcdef":            `^[0-9a-f]{32}$`,
		"0123ABCD-0123-0123-0123-0123456789AB":        `^[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}$`,
		"123e4567-e89b-12d3-a456-426614174000":        `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
		"hunter22":                                    `^[0-9a-f]{0}[0-9a-z]{12}$`, // lengthened
		"correct horse battery staple":                `^[a-z]{28}$`,
		"pässwörter":                                  `^[a-z]{12}$`,
		claims + "c2lnbmF0dXJlc2lnbmF0dXJl":           `^` + regexp.QuoteMeta(claims) + `[0-9a-zA-Z]{24}$`,
		"0123456789":                                  `^[0-9]{12}$`,
		"AKIAIOSFODNN7EXAMPLE":                        `^AKIA[0-9A-Z]{16}$`,
		"\"quotes\\and+slashes/and=signs\"":           `^[a-z]{30}$`,
	} {
		made := map[string]bool{}
		for range 20 {
			placeholder, err := secret.Placeholder([]byte(value))
			if err != nil || !regexp.MustCompile(want).MatchString(placeholder) {
				t.Errorf("for %q: %q (%v), want one like %s", value, placeholder, err, want)
			}
			made[placeholder] = true
		}
		if len(made) != 20 {
			t.Errorf("for %q only %d of 20 differ", value, len(made))
		}
	}
	for _, value := range []string{"", "tiny1", "two\nlines of it", strings.Repeat("x", secret.Longest+1), "with\x00nul bytes"} {
		if placeholder, err := secret.Placeholder([]byte(value)); err == nil || len(value) > 0 && strings.Contains(err.Error(), value) {
			t.Errorf("for %.20q: %q (%v)", value, placeholder, err)
		}
	}
}

func TestBindingOnDisk(t *testing.T) {
	t.Parallel()
	source, _ := secret.ParseSource("keyring:x")
	host, _ := secret.ParseHost("*.example.com:8443")
	want := secret.Binding{Spec: secret.Spec{Name: "X", From: source, Hosts: []secret.Host{host}, In: []secret.Place{secret.Header}}, Placeholder: "abc"}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if text := `{"name":"X","from":"keyring:x","hosts":["*.example.com:8443"],"in":["header"],"placeholder":"abc"}`; string(data) != text {
		t.Errorf("%s, want %s", data, text)
	}
	var got secret.Binding
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
