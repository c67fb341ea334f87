package login_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/login"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
)

// The table is complete: each login belongs to a client, and its tokens go to
// hosts that exist in the form that is compared.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, l := range login.All() {
		if _, ok := profile.ByName(l.Client); !ok || names[l.Name] {
			t.Errorf("%s: its client is %q, or it stands there twice", l.Name, l.Client)
		}
		names[l.Name] = true
		if len(strings.Split(l.File, "/")) <= l.Levels || filepath.IsAbs(l.File) {
			t.Errorf("%s: %q has no %d levels", l.Name, l.File, l.Levels)
		}
		for _, token := range l.Tokens {
			if (token.Role == login.Identity) != (len(token.To) == 0) {
				t.Errorf("%s: the %s token goes to %q", l.Name, token.Role, token.To)
			}
			for _, route := range token.To {
				if canonical, err := egress.CanonicalHost(route.Host); err != nil || canonical != route.Host {
					t.Errorf("%s: the host %q (%v)", l.Name, route.Host, err)
				}
				if token.Role == login.Refresh && (len(route.Under) != 1 || route.Under[0] != l.Renewal.Path) {
					t.Errorf("%s: the refresh token goes to %+v", l.Name, route)
				}
			}
		}
		if l.Renewal != nil && l.Renewal.Client == "" {
			t.Errorf("%s is renewed in the name of any client", l.Name)
		}
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	document, err := login.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func text(t *testing.T, document any) string {
	t.Helper()
	content, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Unnamed values stay outside; an answer changes the values that it names.
func TestDocuments(t *testing.T) {
	l, _ := login.ByName("claude")
	document := parse(t, `{"claudeAiOauth":{"accessToken":"a-1","refreshToken":"r-1","expiresAt":1700000000123,"scopes":["x","y"],"other":"secret"},"mcpOAuth":{"s":"secret"}}`)
	values, err := l.Values(document)
	if diff := cmp.Diff([]string{"a-1", "r-1"}, values); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if diff := cmp.Diff(`{"claudeAiOauth":{"accessToken":"A","expiresAt":1700000000123,"refreshToken":"R","scopes":["x","y"]}}`, text(t, l.Inside(document, []string{"A", "R"}))); diff != "" {
		t.Error(diff)
	}
	if !l.Ends(document).Equal(time.UnixMilli(1700000000123)) {
		t.Error(l.Ends(document))
	}
	now := time.UnixMilli(1700000000000)
	if !l.Renew(document, parse(t, `{"access_token":"a-2","expires_in":3600,"scope":"x z"}`), now) {
		t.Error("it is not renewed")
	}
	if diff := cmp.Diff(`{"claudeAiOauth":{"accessToken":"a-2","expiresAt":1700003600000,"other":"secret","refreshToken":"r-1","scopes":["x","z"]},"mcpOAuth":{"s":"secret"}}`, text(t, document)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`{}`, `{"claudeAiOauth":null}`, `{"claudeAiOauth":{"accessToken":"","refreshToken":""}}`, `{"claudeAiOauth":{"accessToken":1}}`} {
		if _, err := l.Values(parse(t, bad)); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range []string{`{}`, `{"access_token":""}`, `{"access_token":7}`} {
		if l.Renew(document, parse(t, bad), now) {
			t.Errorf("%s renews it", bad)
		}
	}
	c, _ := login.ByName("codex")
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(`{"exp":1700000000}`)) + ".c2lnbmF0dXJl"
	if end := c.Ends(parse(t, `{"tokens":{"access_token":"`+token+`"}}`)); !end.Equal(time.Unix(1700000000, 0)) {
		t.Error(end)
	}
	o, _ := login.ByName("opencode-chatgpt")
	if _, err := o.Values(parse(t, `{"openai":{"type":"api","key":"k"}}`)); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

// A token that stands in two places has one placeholder; a login for hosts of the
// user's own is not meant.
func TestAccountsOfOpenCode(t *testing.T) {
	document := parse(t, `{"github-copilot":{"type":"oauth","access":"gho_1","refresh":"gho_1","expires":0},`+
		`"poe":{"type":"oauth","access":"p-1","refresh":"p-1","expires":1700000000000},"xai":{"type":"oauth","access":"x-1","refresh":"r-1","expires":1700000000000},`+
		`"digitalocean":{"type":"api","key":"d-1","metadata":{"oauth_access":"d-1","oauth_expires":"1","routers":"[]","other":"secret"}}}`)
	for name, want := range map[string][2]string{
		"opencode-copilot":      {"gho_1", `{"github-copilot":{"access":"P0","expires":0,"refresh":"P0","type":"oauth"}}`},
		"opencode-poe-account":  {"p-1", `{"poe":{"access":"P0","expires":1700000000000,"refresh":"P0","type":"oauth"}}`},
		"opencode-supergrok":    {"x-1 r-1", `{"xai":{"access":"P0","expires":1700000000000,"refresh":"P1","type":"oauth"}}`},
		"opencode-digitalocean": {"d-1", `{"digitalocean":{"key":"P0","metadata":{"oauth_access":"P0","oauth_expires":"1","routers":"[]"},"type":"api"}}`},
	} {
		l, ok := login.ByName(name)
		values, err := l.Values(document)
		if !ok || err != nil || strings.Join(values, " ") != want[0] {
			t.Errorf("%s: %q, %v", name, values, err)
			continue
		}
		if diff := cmp.Diff(want[1], text(t, l.Inside(document, []string{"P0", "P1"}[:len(values)]))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	copilot, _ := login.ByName("opencode-copilot")
	if _, err := copilot.Values(parse(t, `{"github-copilot":{"type":"oauth","access":"g","refresh":"g","expires":0,"enterpriseUrl":"company.ghe.com"}}`)); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the token of an Enterprise goes to another host: %v", err)
	}
	// A key without an account has no second place.
	digitalOcean, _ := login.ByName("opencode-digitalocean")
	if got := text(t, digitalOcean.Inside(parse(t, `{"digitalocean":{"type":"api","key":"k"}}`), []string{"P0"})); got != `{"digitalocean":{"key":"P0","type":"api"}}` {
		t.Error(got)
	}
	// What ends first counts, as the client sees it.
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1600000000}`)) + ".x"
	superGrok, _ := login.ByName("opencode-supergrok")
	if end := superGrok.Ends(parse(t, `{"xai":{"type":"oauth","access":"`+token+`","refresh":"r","expires":1700000000000}}`)); !end.Equal(time.Unix(1600000000, 0)) {
		t.Error(end)
	}
}

func TestPaths(t *testing.T) {
	l, _ := login.ByName("claude")
	moved := func(dir string) func(string) string {
		return func(name string) string { return map[string]string{"CLAUDE_CONFIG_DIR": dir}[name] }
	}
	for file, want := range map[string][2]string{
		l.File: {"/h/.claude/.credentials.json", "/m/.credentials.json"}, ".claude.json": {"/h/.claude.json", "/m/.claude.json"},
		".claude.lock": {"/h/.claude.lock", "/m.lock"}, ".claude/.oauth_refresh.lock": {"/h/.claude/.oauth_refresh.lock", "/m/.oauth_refresh.lock"},
	} {
		if got := [2]string{l.Path(file, "/h", moved("")), l.Path(file, "/h", moved("/m"))}; got != want {
			t.Errorf("%s: %q", file, got)
		}
	}
}

// A file is replaced atomically, keeps its link and its mode, and writers take
// turns.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, []byte(`{"n":0}`), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	own, theirs := filepath.Join(dir, "locks", "own"), filepath.Join(dir, "theirs.lock")
	var all sync.WaitGroup
	const turns = 8
	for range turns {
		all.Go(func() {
			release, err := login.Lock(t.Context(), own, []string{theirs})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(theirs); err != nil {
				t.Error(err)
			}
			document, err := login.ReadFile(link)
			if err == nil {
				n, _ := document["n"].(json.Number).Int64()
				document["n"] = n + 1
				err = login.WriteFile(link, document)
			}
			if err := errors.Join(err, release()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	document, err := login.ReadFile(target)
	if err != nil || fmt.Sprint(document["n"]) != fmt.Sprint(turns) {
		t.Error(document, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Error("the link is replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := os.Stat(theirs); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the client's lock stays:", err)
	}
	// Another process's lock is waited for, unless it is stale.
	if err := os.Mkdir(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := login.Lock(ctx, own, []string{theirs}); fault.KindOf(err) != fault.Canceled {
		t.Error("another's lock is taken:", err)
	}
	long := time.Now().Add(-time.Minute)
	if err := os.Chtimes(theirs, long, long); err != nil {
		t.Fatal(err)
	}
	release, err := login.Lock(t.Context(), own, []string{theirs})
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
