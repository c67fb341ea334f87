package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	source, err := secret.ParseSource("keyring:api")
	if err != nil {
		t.Fatal(err)
	}
	host, err := secret.ParseHost("api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := secret.ParseHost("http://localhost:4000")
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string][]secret.Spec{
		"[secrets.API_KEY]\nfrom = 'keyring:api'\nhosts = ['API.example.com']": {
			{Name: "API_KEY", From: source, Hosts: []secret.Host{host}, In: []secret.Place{secret.Header}},
		},
		"[secrets.API_KEY]\nfrom = 'keyring:api'\nhosts = ['api.example.com', 'https://api.example.com:443/', 'http://localhost:4000']\nin = ['body', 'header', 'body']": {
			{Name: "API_KEY", From: source, Hosts: []secret.Host{host, plain}, In: []secret.Place{secret.Body, secret.Header}},
		},
		"secrets = {}": nil,
	} {
		if diff := cmp.Diff(want, parse(t, "f", content).Secrets); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", content, diff)
		}
	}
	const good = "from = 'keyring:api'\nhosts = ['api.example.com']\n"
	for content, want := range map[string]string{
		"secrets = 3":                                                        "must be a table",
		"secrets.A = 'sk-ant-api03-thevalue'":                                "must be a table with from and hosts",
		"[secrets.A-B]\n" + good:                                             "not the name of a variable",
		"[secrets.A]\nfrom = 'keyring:api'":                                  "hosts is missing",
		"[secrets.A]\nhosts = ['a.example']":                                 "from is missing",
		"[secrets.A]\n" + good + "in = []":                                   "in must name at least one place",
		"[secrets.A]\n" + good + "in = ['path']":                             `cannot use the place "path"`,
		"[secrets.A]\n" + good + "value = 'x'":                               "no configuration holds a value",
		"[secrets.A]\n" + good + "host = 'x'":                                `unknown key "host"`,
		"[secrets.A]\nfrom = 'keyring:a'\nhosts = ['*']":                     "a wildcard stands only for",
		"[secrets.A]\nfrom = 'sk-ant-api03-thevalue'\nhosts = ['a.example']": "does not begin with keyring:",
	} {
		_, err := config.Parse("f", []byte(content))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "thevalue") {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}
