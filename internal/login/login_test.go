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
