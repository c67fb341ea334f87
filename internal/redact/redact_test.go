package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

const gone = redact.Gone

func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"go test ./...":                "go test ./...",
		"curl http://localhost:8080/x": "curl http://localhost:8080/x",
		"docker run -u 1000:1000 x":    "docker run -u 1000:1000 x",
		"curl -H 'Authorization: Bearer abcdef123456' https://x.y": "curl -H 'Authorization: Bearer " + gone + "' https://x.y",
		"API_KEY=abc123 make":                              "API_KEY=" + gone + " make",
		"export GITHUB_TOKEN=ghp_0123456789abcdef":         "export GITHUB_TOKEN=" + gone,
		"git clone https://user:hunter22@host/x":           "git clone https://user:" + gone + "@host/x",
		"login --password hunter22 --user me":              "login --password " + gone + " --user me",
		"login --password 'two words' --user me":           "login --password '" + gone + "' --user me",
		`DB_PASSWORD="a \"b\" c" psql`:                     `DB_PASSWORD="` + gone + `" psql`,
		`DB_PASSWORD="a b`:                                 `DB_PASSWORD="` + gone + ` b`, // a string without an end
		"curl -u me:hunter22 https://x.y":                  "curl -u me:" + gone + " https://x.y",
		"PASS=hunter22 MYSQL_PWD='two words' SMTP_PASS=x":  "PASS=" + gone + " MYSQL_PWD='" + gone + "' SMTP_PASS=" + gone,
		"PWD=/here BYPASS=1 PASS: 3 of 4":                  "PWD=/here BYPASS=1 PASS: 3 of 4",
		"redis://:hunter22@host/0":                         "redis://:" + gone + "@host/0",
		"echo sk-ant-api03-abcdefgh":                       "echo " + gone,
		`{"client_secret": "abc"}`:                         `{"client_secret": "` + gone + `"}`,
		`{"usage":{"input_tokens":12,"cached_tokens": 3}}`: `{"usage":{"input_tokens":12,"cached_tokens": 3}}`, // counts
		`{"tokens":12,"refresh_token":12}`:                 `{"tokens":12,"refresh_token":"` + gone + `"}`,
		"tokens=12ab other_tokens=1234567890":              "tokens=" + gone + " other_tokens=" + gone,
		"echo AKIAIOSFODNN7EXAMPLE":                        "echo " + gone,
		"use the word exactly-this-secret here":            "use the word " + gone + " here",
		`say 'exactly'\''quoted'`:                          "say '" + gone + "'",
		"-----BEGIN RSA PRIVATE KEY-----\nabc":             "-----BEGIN RSA PRIVATE KEY-----" + gone,
	} {
		got := redact.Text(text, "exactly", "exactly-this-secret", "exactly'quoted", "short")
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if again := redact.Text(got); again != got {
			t.Errorf("%q, once more: %q", got, again)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"fix the token: it expires":                 "fix the token: it expires",
		"password=required in the form":             "password=required in the form",
		"use ghp_0123456789abcdef for the download": "use " + gone + " for the download",
		"clone from https://me:hunter22@host":       "clone from https://me:" + gone + "@host",
		"with hunter22 by value":                    "with " + gone + " by value",
	} {
		if got := redact.Tokens(text, "hunter22"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"API_KEY": true, "github-token": true, "PASS": true, "db_pass": true, "MYSQL_PWD": true, "PGPASSWORD": true, "PASSPHRASE": true,
		"PWD": false, "OLDPWD": false, "BYPASS": false, "PASSING": false, "COMPASS": false, "KEYBOARD": false,
	} {
		if got := redact.Name(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestArgv(t *testing.T) {
	t.Parallel()
	argv := []string{"env", "DB_PASSWORD=it's two words", "login", "--token", "two words", "--api-key", "--verbose", "-v", "sh", "-c", "TOKEN=ghp_0123456789abcdef true", "by value"}
	want := []string{"env", "DB_PASSWORD=" + gone, "login", "--token", gone, "--api-key", "--verbose", "-v", "sh", "-c", "TOKEN=" + gone + " true", gone}
	if diff := cmp.Diff(want, redact.Argv(argv, "by value")); diff != "" {
		t.Error(diff)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	environment := []string{"API_TOKEN=hunter2", "USE_TOKEN=true", "MODE=production", "LICENCE=0123456789abcdef", "DIR=/home/me/a/project", "TEXT=some words that are long", "EMPTY="}
	if diff := cmp.Diff([]string{"hunter2", "0123456789abcdef"}, redact.Values(environment)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"hunter2"}, redact.NamedValues(environment)); diff != "" {
		t.Error(diff)
	}
}

// FuzzSuspicious: where the quick look finds nothing, the patterns do not either.
func FuzzSuspicious(f *testing.F) {
	for _, seed := range []string{"go test ./...", "API_KEY=abc", "paſſword=abcd", "Bearer abcdefgh", "eyJhbGciOi.eyJhbGciOi.", "AKIAIOSFODNN7EXAMPLE", "x://a:b@c", "curl -u a:b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) && redact.Text(text) != redact.Slowly(text) {
			t.Errorf("%q: %q, want %q", text, redact.Text(text), redact.Slowly(text))
		}
		if strings.Contains(redact.Tokens(text), "AKIAIOSFODNN7EXAMPLE") {
			t.Errorf("%q keeps a token", text)
		}
	})
}

// A line of a client is JSON as a rule: a secret in it is escaped, once or more,
// and what is left is JSON.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"command":"export DB_PASSWORD=\"hunter22\" && go"}`:             `{"command":"export DB_PASSWORD=\"` + gone + `\" && go"}`,
		`{"command":"echo \u0073k-ant-api03-abcdefgh"}` + "\n":            `{"command":"echo ` + gone + `"}` + "\n",
		`{"text":"it is a\"value\\of mine"}`:                              `{"text":"it is ` + gone + ` mine"}`,
		`{"output":"{\"text\":\"it is a\\\"value\\\\of mine\"}"}`:         `{"output":"{\"text\":\"it is ` + gone + ` mine\"}"}`,
		`{"argv":["login","--password","two words","x"],"n": 1.5 }`:       `{"argv":["login","--password","` + gone + `","x"],"n": 1.5 }`,
		`{"api_key": null, "tokens":["a","b"], "output_tokens" : 12}`:     `{"api_key": null, "tokens":["` + gone + `","` + gone + `"], "output_tokens" : 12}`,
		`{"headers":{"Authorization":"Bearer abcdef123456"},"a":[[],{}]}`: `{"headers":{"Authorization":"` + gone + `"},"a":[[],{}]}`,
		`[{"a\"value\\of":"x<y>&z"}]`:                                     `[{"` + gone + `":"x<y>&z"}]`,
		`{"text":"fine \u00e9\/"}`:                                        `{"text":"fine \u00e9\/"}`,
	} {
		got := redact.Text(text, `a"value\of`)
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if again := redact.Text(got); again != got || !json.Valid([]byte(got)) {
			t.Errorf("%s, once more: %s", got, again)
		}
	}
}

// FuzzDocument: a document stays one, without the value in any of its strings.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"a":"the-value"}`, `["the-value",{"b":[1,true,"\u0074he-value"]}]`, `{"token":-1e5}`, `{"the-value":"{\"x\":\"the-\\u0076alue\"}"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := redact.Text(text, "the-value")
		if !json.Valid([]byte(text)) || !strings.ContainsAny(text, "{[") {
			return
		}
		var decoded any
		if err := json.Unmarshal([]byte(got), &decoded); err != nil {
			t.Fatalf("%q is no document any more: %q", text, got)
		}
		again, err := json.Marshal(decoded)
		if err != nil || strings.Contains(string(again), "the-value") {
			t.Errorf("%q keeps the value: %q (%v)", text, again, err)
		}
	})
}
