package clients_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// issuer stands in for a provider's token endpoint and its API. A refresh token
// counts once, and an access token until the next two are issued.
type issuer struct {
	jwt   bool
	scope string // empty: "one two"

	mu sync.Mutex
	seen
}

// seen is what an issuer has issued and was told.
type seen struct {
	number  int
	refresh string
	access  []string
	given   []string // every token that there ever was
	reused  int      // refresh tokens that came again
	asked   []string // bodies of renewals
	sent    []string // method, path and authorization of all else
}

// look returns the present state.
func (s *issuer) look() seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.seen
	now.access, now.given, now.asked, now.sent = slices.Clone(s.access), slices.Clone(s.given), slices.Clone(s.asked), slices.Clone(s.sent)
	return now
}

func (s *issuer) make(kind string) string {
	token := fmt.Sprintf("%s-%d-%s", kind, s.number, strings.Repeat("Tk7", 12))
	if s.jwt && kind != "rt" {
		encode := base64.RawURLEncoding.EncodeToString
		token = encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d,"email":"who@example.com","n":%d,"https://api.openai.com/auth":{"chatgpt_account_id":"acc-1","chatgpt_plan_type":"pro"}}`, time.Now().Add(time.Hour).Unix(), s.number)) + "." + encode([]byte(token))
	}
	s.given = append(s.given, token)
	return token
}

// renew issues the next tokens; it is called with mu held.
func (s *issuer) renew() map[string]any {
	s.number++
	s.refresh = s.make("rt")
	s.access = append(s.access, s.make("at"))
	s.access = s.access[max(0, len(s.access)-2):]
	return map[string]any{"access_token": s.access[len(s.access)-1], "refresh_token": s.refresh, "id_token": s.make("id"), "expires_in": 3600, "token_type": "Bearer", "scope": cmp.Or(s.scope, "one two"), "unknown": s.refresh}
}

// forget makes every access token invalid.
func (s *issuer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access = nil
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"error": "invalid_grant"}
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/token") {
		s.asked = append(s.asked, string(body))
		fields := map[string]string{}
		if form, err := url.ParseQuery(string(body)); err == nil && form.Has("grant_type") {
			for name := range form {
				fields[name] = form.Get(name)
			}
		} else if json.Unmarshal(body, &fields) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if fields["refresh_token"] != s.refresh {
			s.reused++
			w.WriteHeader(http.StatusBadRequest)
		} else {
			answer = s.renew()
		}
	} else {
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.sent = append(s.sent, r.Method+" "+r.URL.Path+" "+bearer+" "+string(body))
		answer = map[string]any{"echo": bearer}
		if !slices.Contains(s.access, bearer) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// account is a client with a login in a file.
type account struct {
	client, file    string
	api, endpoint   string // host and path
	id              string // client_id
	form, jwt       bool
	scoped          bool      // its file names scopes
	at              [3]string // access, refresh and end in the file, with dots
	document        func(access, refresh, identity string, end time.Time) string
	forbidden       string // URL that the access token is not for
	stays, onlyHere string // the parts of the file that go inside, and that do not
}

func accounts() []account {
	return []account{
		{
			client: "claude", file: ".claude/.credentials.json", api: "api.anthropic.com/v1/messages", endpoint: "platform.claude.com/v1/oauth/token",
			id: "9d1c250a-e61b-44d9-88ed-5944d1962f5e", at: [3]string{"claudeAiOauth.accessToken", "claudeAiOauth.refreshToken", "claudeAiOauth.expiresAt"}, scoped: true,
			document: func(access, refresh, _ string, end time.Time) string {
				return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":%q,"expiresAt":%d,"scopes":["one","two"],"subscriptionType":"max"},"mcpOAuth":{"x":{"accessToken":"another-servers-token"}}}`, access, refresh, end.UnixMilli())
			},
			forbidden: "api.anthropic.com/api/oauth/claude_cli/create_api_key", stays: "max", onlyHere: "another-servers-token",
		},
		{
			client: "codex", file: ".codex/auth.json", api: "chatgpt.com/backend-api/codex/responses", endpoint: "auth.openai.com/oauth/token",
			id: "app_EMoamEEZ73f0CkXaXp7hrann", jwt: true, at: [3]string{"tokens.access_token", "tokens.refresh_token", ""},
			document: func(access, refresh, identity string, _ time.Time) string {
				return fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"access_token":%q,"refresh_token":%q,"id_token":%q,"account_id":"acc-1"},"agent_identity":"only-here","last_refresh":"2026-01-01T00:00:00Z"}`, access, refresh, identity)
			},
			forbidden: "chatgpt.com/backend-api/conversations", stays: "acc-1", onlyHere: "only-here",
		},
		{
			client: "gemini", file: ".gemini/oauth_creds.json", api: "cloudcode-pa.googleapis.com/v1internal:generate", endpoint: "oauth2.googleapis.com/token",
			id: "681255809395-oo8ft2oprdrnp9e3aqf6av3hmdib135j.apps.googleusercontent.com", form: true, scoped: true, at: [3]string{"access_token", "refresh_token", "expiry_date"},
			document: func(access, refresh, identity string, end time.Time) string {
				return fmt.Sprintf(`{"access_token":%q,"refresh_token":%q,"id_token":%q,"scope":"one two","token_type":"Bearer","expiry_date":%d,"private":"only-here"}`, access, refresh, identity, end.UnixMilli())
			},
			forbidden: "oauth2.googleapis.com/revoke", stays: "Bearer", onlyHere: "only-here",
		},
		{
			client: "opencode", file: ".local/share/opencode/auth.json", api: "chatgpt.com/backend-api/codex/responses", endpoint: "auth.openai.com/oauth/token",
			id: "app_EMoamEEZ73f0CkXaXp7hrann", form: true, jwt: true, at: [3]string{"openai.access", "openai.refresh", "openai.expires"},
			document: func(access, refresh, _ string, end time.Time) string {
				return fmt.Sprintf(`{"openai":{"type":"oauth","access":%q,"refresh":%q,"expires":%d,"accountId":"acc-1"},"gitlab":{"type":"oauth","access":"only-here","refresh":"only-here","expires":0}}`, access, refresh, end.UnixMilli())
			},
			forbidden: "chatgpt.com/backend-api/conversations", stays: "acc-1", onlyHere: "only-here",
		},
		{
			client: "opencode", file: ".local/share/opencode/auth.json", api: "api.x.ai/v1/chat/completions", endpoint: "auth.x.ai/oauth2/token",
			id: "b1a00492-073a-47ea-816f-4c329264a828", form: true, at: [3]string{"xai.access", "xai.refresh", "xai.expires"},
			document: func(access, refresh, _ string, end time.Time) string {
				return fmt.Sprintf(`{"xai":{"type":"oauth","access":%q,"refresh":%q,"expires":%d},"snowflake-cortex":{"type":"oauth","access":"only-here","refresh":"only-here","expires":0}}`, access, refresh, end.UnixMilli())
			},
			forbidden: "api.x.ai/management/keys", stays: "expires", onlyHere: "only-here",
		},
	}
}

// withAccount is a stand-in for a client: it calls its model with the access
// token of its file, and renews that first when it has ended, or when the model
// does not take it. Its arguments are those of its account.
const withAccount = `#!/usr/bin/env python3
import json, os, sys, time, urllib.error, urllib.parse, urllib.request
FILE, API, ENDPOINT, ID, FORM, AT = %s
path = os.path.join(os.environ["HOME"], FILE)
sys.stdin.read()
def read(): return json.load(open(path))
def find(d, at):
    for name in at.split("."): d = d[name]
    return d
def put(d, at, value):
    *way, last = at.split(".")
    for name in way: d = d[name]
    d[last] = value
def post(url, body, headers):
    try:
        with urllib.request.urlopen(urllib.request.Request("https://" + url, body, headers), timeout=60) as r: return r.status, r.read().decode()
    except urllib.error.HTTPError as e: return e.code, e.read().decode()
def renew():
    before = find(read(), AT[1])
    fields = {"grant_type": "refresh_token", "refresh_token": before, "client_id": ID, "scope": "one"}
    body, kind = (urllib.parse.urlencode(fields), "application/x-www-form-urlencoded") if FORM else (json.dumps(fields), "application/json")
    code, text = post(ENDPOINT, body.encode(), {"Content-Type": kind})
    if code != 200:
        for _ in range(600): # another client of the same file was faster
            if find(read(), AT[1]) != before: return
            time.sleep(0.05)
        sys.exit("cannot renew: %%d %%s" %% (code, text))
    answer, document = json.loads(text), read()
    if find(document, AT[1]) != before: return
    put(document, AT[0], answer["access_token"]); put(document, AT[1], answer["refresh_token"])
    if AT[2]: put(document, AT[2], int(time.time() * 1000) + answer["expires_in"] * 1000)
    with open(path + ".new", "w") as f: json.dump(document, f)
    os.rename(path + ".new", path)
if AT[2] and find(read(), AT[2]) < time.time() * 1000 + 300000: renew()
call = lambda: post(API, b"ask", {"Authorization": "Bearer " + find(read(), AT[0])})
code, text = call()
if code == 401: renew(); code, text = call()
if code != 200: sys.exit("cannot ask: %%d %%s" %% (code, text))
open(os.path.join(os.environ["HOME"], "echo"), "a").write(text)
print(json.dumps({"type": "result", "subtype": "success", "status": "success", "is_error": False, "result": "done", "session_id": "s"}))
print(json.dumps({"type": "turn.completed", "usage": {}}))
`

func (a account) program() string {
	flag := map[bool]string{true: "True", false: "False"}
	return fmt.Sprintf(withAccount, fmt.Sprintf("%q, %q, %q, %q, %s, (%q, %q, %q)", a.file, a.api, a.endpoint, a.id, flag[a.form], a.at[0], a.at[1], a.at[2]))
}

// A login that the host's client keeps in a file works inside, where there are
// only placeholders, and stays valid: whichever client renews it first, in a
// sandbox or on the host, all are logged in afterwards.
func TestLoginsOfAgents(t *testing.T) { // not parallel: its hosts are those of other tests too
	world.Need(t, "curl", "python3")
	// They wait more than they compute: beside each other, but for those that use
	// the same host.
	byHost := map[string][]account{}
	for _, a := range accounts() {
		host, _, _ := strings.Cut(a.api, "/")
		byHost[host] = append(byHost[host], a)
	}
	for host, some := range byHost {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			for _, a := range some {
				t.Run(a.client, func(t *testing.T) { a.works(t) })
			}
		})
	}
}

func (a account) works(t *testing.T) {
	site := &issuer{jwt: a.jwt}
	for _, address := range []string{a.api, a.endpoint} {
		name, _, _ := strings.Cut(address, "/")
		webSite(t, outside.Host(name), site)
	}
	h := newHost(t)
	h.Put(h.Home+"/.local/bin/"+a.client, a.program())
	if err := os.Chmod(h.Home+"/.local/bin/"+a.client, 0o755); err != nil {
		t.Fatal(err)
	}
	h = h.With("SSL_CERT_FILE="+outside.CA, "PATH="+h.Home+"/.local/bin:"+os.Getenv("PATH"))
	path := filepath.Join(h.Home, a.file)
	outdate := func() { a.outdate(t, h, site) }
	outdate()
	run := func(args ...string) {
		t.Helper()
		if got := h.Litterbox(args...); got.Code != 0 {
			t.Fatalf("%q exited %d: %s%s\n%s\n%q", args, got.Code, got.Stdout, got.Stderr, h.Must("network", args[len(args)-1]), site.look().asked)
		}
	}
	for _, box := range []string{"first", "second"} {
		h.Must("create", box)
		run("agent", "run", a.client, "Ask", "--in", box)
	}
	now := site.look()
	if now.number != 2 || now.reused != 0 {
		t.Errorf("for two sandboxes it was renewed %d times, %d refused", now.number-1, now.reused)
	}
	if a.scoped && !strings.Contains(now.asked[0], "one two") && !strings.Contains(now.asked[0], "one+two") {
		t.Errorf("a client inside has taken scopes from the host's: %q", now.asked)
	}
	kept, err := os.ReadFile(path)
	if info, infoErr := os.Stat(path); err != nil || infoErr != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(kept), now.refresh) || !strings.Contains(string(kept), a.onlyHere) {
		t.Errorf("the host's file is %s (%v, %v)", kept, err, infoErr)
	}
	inside := h.InsideShell("first", `cat "$HOME/`+a.file+`" "$HOME/echo"`).Stdout
	if !strings.Contains(inside, a.stays) || strings.Contains(inside, a.onlyHere) {
		t.Errorf("the file inside is %s", inside)
	}

	// Two sandboxes and the host's client, at the same moment.
	for range 2 {
		outdate()
		var all sync.WaitGroup
		results := make([]program.Result, 3)
		all.Go(func() { results[0] = h.Litterbox("agent", "resume", "first", "Ask") })
		all.Go(func() { results[1] = h.Litterbox("agent", "resume", "second", "Ask") })
		all.Go(func() { results[2] = h.Shell(a.client + " </dev/null") })
		all.Wait()
		for n, got := range results {
			if got.Code != 0 {
				t.Errorf("%d of three that renew at the same moment exited %d: %s%s", n, got.Code, got.Stdout, got.Stderr)
			}
		}
		kept, _ := os.ReadFile(path)
		if counts := site.look().refresh; !strings.Contains(string(kept), counts) {
			t.Errorf("the host is logged out: its file is %s, and %q counts", kept, counts)
		}
	}
	// An access token that its host no longer accepts is renewed before its end.
	site.forget()
	run("agent", "resume", "first", "Ask")
	// A keeper that was killed knows the placeholders.
	keeper, _ := h.MustProcesses("second")
	if err := (&os.Process{Pid: keeper}).Kill(); err != nil {
		t.Fatal(err)
	}
	site.forget()
	run("agent", "resume", "second", "Ask")

	a.attack(t, h, site)
	values := site.look().given
	values = values[max(0, len(values)-6):]
	wantUnseen(t, h, "first", append(values, a.onlyHere)...)
}

// outdate makes the login on the host need a renewal.
func (a account) outdate(t *testing.T, h *program.Host, site *issuer) {
	t.Helper()
	site.mu.Lock()
	if site.number == 0 {
		site.renew()
	}
	access, refresh, identity := site.access[len(site.access)-1], site.refresh, site.make("id")
	site.mu.Unlock()
	site.forget()
	path := filepath.Join(h.Home, a.file)
	h.Put(path, a.document(access, refresh, identity, time.Now().Add(-time.Minute)))
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// attack tries to get at tokens from inside, or to harm the login.
func (a account) attack(t *testing.T, h *program.Host, site *issuer) {
	t.Helper()
	const token = `import json,os,sys
d=json.load(open(os.path.join(os.environ["HOME"],sys.argv[1])))
for name in sys.argv[2].split("."): d=d[name]
print(d,end="")`
	h.Put(h.Dir+"/token.py", token)
	if got := h.Shell(h.Program("litterbox") + " write first token.py <" + h.Dir + "/token.py"); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	access := `"$(python3 token.py ` + a.file + ` ` + a.at[0] + `)"`
	refresh := `"$(python3 token.py ` + a.file + ` ` + a.at[1] + `)"`
	host, _, _ := strings.Cut(a.endpoint, "/")
	for name, script := range map[string]string{
		"a path that is not meant":       `curl -sS -m 30 -X POST -H "Authorization: Bearer "` + access + ` https://` + a.forbidden,
		"a path that means another":      `curl -sS -m 30 --path-as-is -X POST -H "Authorization: Bearer "` + access + ` https://` + strings.Replace(a.api, "/v1", "/v1/../v1", 1) + `/..%2f../` + a.forbidden[strings.Index(a.forbidden, "/"):],
		"a refresh token to the API":     `curl -sS -m 30 -H "Authorization: Bearer "` + refresh + ` https://` + a.api,
		"a refresh token to be revoked":  `curl -sS -m 30 -d token=` + refresh + ` https://` + host + `/revoke`,
		"a renewal for another client":   `curl -sS -m 30 -d grant_type=refresh_token -d client_id=other -d refresh_token=` + refresh + ` https://` + a.endpoint,
		"a token exchanged for another":  `curl -sS -m 30 -d grant_type=urn:ietf:params:oauth:grant-type:token-exchange -d subject_token=` + access + ` https://` + a.endpoint,
		"a renewal, for what it answers": `curl -sS -m 30 -d grant_type=refresh_token -d client_id=` + a.id + ` -d refresh_token=` + refresh + ` https://` + a.endpoint,
	} {
		before := site.look()
		got := h.InsideShell("first", script)
		after := site.look()
		for _, value := range after.given {
			for _, sent := range after.sent[len(before.sent):] {
				if strings.Contains(sent, value) && !strings.Contains(sent, strings.SplitN(a.api, "/", 2)[1]+" ") {
					t.Errorf("%s: a token was sent: %q", name, sent)
				}
			}
			if strings.Contains(got.Stdout+got.Stderr, value) {
				t.Errorf("%s: a token came in: %s%s", name, got.Stdout, got.Stderr)
			}
		}
		if refused := strings.Contains(got.Stdout, "litterbox: "); refused == strings.Contains(name, "answers") {
			t.Errorf("%s: refused %v: %d %s%s", name, refused, got.Code, got.Stdout, got.Stderr)
		}
		if after.number != before.number {
			t.Errorf("%s: the login was renewed", name)
		}
	}
	// The control: the client's own request holds the token.
	last := site.look().access
	got := h.InsideShell("first", `curl -sSf -m 30 -d ask -H "Authorization: Bearer "`+access+` https://`+a.api)
	if sent := site.look().sent; got.Code != 0 || !strings.Contains(sent[len(sent)-1], last[len(last)-1]) {
		t.Errorf("the control does not reach the API: %d %s%s %q", got.Code, got.Stdout, got.Stderr, sent)
	}
}
