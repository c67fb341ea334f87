package clients_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// subscription stands in for all that a provider has for an account: the tokens
// (issuer), the answers about the account, and the model. It answers only
// tokens to a request without a valid access token.
type subscription struct {
	*issuer

	mu    sync.Mutex
	other []string      // requests that it does not know
	waits bool          // tasks wait in the middle of their answer; some clients compress what they ask
	asked chan struct{} // a task that waits has come to the model
	goOn  chan struct{} // lets it go on
}

func (s *subscription) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/token") {
		s.issuer.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.issuer.mu.Lock()
	counts := slices.Contains(s.access, bearer)
	s.sent = append(s.sent, fmt.Sprintf("%s %s %t", r.Method, r.URL.Path, counts))
	s.issuer.mu.Unlock()
	if !counts {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"the token does not count"}}`)
		return
	}
	if s.model(w, r, body) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := `{"error":{"code":404,"message":"not here"}}`
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/wham/accounts/check"):
		answer = `{"accounts":[{"id":"acc-1","structure":"personal","plan_type":"pro","workspace_backend_origin":"https://chatgpt.com","account_routing_override":"NO_CONSTRAINT"}],"account_ordering":["acc-1"],"default_account_id":"acc-1"}`
	case strings.HasSuffix(path, "/codex/models"):
		answer = `{"models":[]}`
	case strings.HasSuffix(path, ":loadCodeAssist"):
		answer = `{"currentTier":{"id":"standard-tier"},"cloudaicompanionProject":"project-1","allowedTiers":[{"id":"standard-tier","isDefault":true}]}`
	case strings.HasSuffix(path, ":listExperiments"):
		answer = `{"experimentIds":[],"flags":[]}`
	case strings.HasSuffix(path, "/tokeninfo"):
		answer = `{"azp":"681255809395-oo8ft2oprdrnp9e3aqf6av3hmdib135j.apps.googleusercontent.com","scope":"one","expires_in":"3000"}`
	default:
		s.mu.Lock()
		s.other = append(s.other, r.Method+" "+path)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, answer)
}

// model answers calls of the three models with "done", in the wire format of
// each. A task may have to wait in the middle.
func (s *subscription) model(w http.ResponseWriter, r *http.Request, body []byte) bool {
	var parts []string
	event := func(name string, data string) {
		if name != "" {
			name = "event: " + name + "\n"
		}
		parts = append(parts, name+"data: "+data+"\n\n")
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/v1/messages"):
		var q struct {
			Stream bool
			Model  string
		}
		if err := json.Unmarshal(body, &q); err != nil {
			return false
		}
		message := fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":%q,"content":[%%s],"stop_reason":%%s,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, q.Model)
		if !q.Stream {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, message, `{"type":"text","text":"done"}`, `"end_turn"`)
			return true
		}
		event("message_start", `{"type":"message_start","message":`+fmt.Sprintf(message, "", "null")+`}`)
		event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"done"}}`)
		event("content_block_stop", `{"type":"content_block_stop","index":0}`)
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}`)
		event("message_stop", `{"type":"message_stop"}`)
	case strings.HasSuffix(path, "/chat/completions"):
		event("", `{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"done"},"finish_reason":null}]}`)
		event("", `{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		event("", `[DONE]`)
	case strings.HasSuffix(path, "/responses"):
		event("response.created", `{"type":"response.created","response":{"id":"resp_1","object":"response","created_at":1,"model":"m","output":[]}}`)
		event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","id":"msg_1","status":"in_progress","content":[]}}`)
		event("response.output_text.delta", `{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"msg_1","delta":"done"}`)
		event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"done","annotations":[]}]}}`)
		event("response.completed", `{"type":"response.completed","response":{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"completed","output":[],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}}}`)
	case strings.HasSuffix(path, "enerateContent"):
		answer := `{"response":{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"done"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"stub"}}`
		if !strings.HasSuffix(path, ":streamGenerateContent") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
			return true
		}
		event("", answer)
	default:
		return false
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for n, part := range parts {
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
		if n == 0 && s.isWaiting() {
			select {
			case s.asked <- struct{}{}:
			default:
			}
			select {
			case <-s.goOn:
			case <-r.Context().Done():
			}
		}
	}
	return true
}

func (s *subscription) isWaiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits
}

// realAccount is a real client with such an account.
type realAccount struct {
	account
	dir   string   // of its program, below the installation
	start string   // the client on the host, with its task on standard input
	env   []string // what keeps it on the host from asking others
	home  map[string]string
	scope string
	more  []string // hosts beside those of the account
	flags []string // of the run

	ready string // what its full-screen interface shows once it takes a task
	quit  string // what is typed to end it
}

func realAccounts() []realAccount {
	find := func(client string) account {
		all := accounts()
		return all[slices.IndexFunc(all, func(a account) bool { return a.client == client || a.client+" "+a.api == client })]
	}
	opencode := func(api, model string, more ...string) realAccount {
		return realAccount{
			account: find("opencode " + api), dir: "node_modules/opencode-linux-x64-baseline/bin", start: "opencode run --model " + model, more: more,
			flags: []string{"--model", model, "-e", "OPENCODE_DISABLE_MODELS_FETCH=1"}, ready: "Ask anything", quit: "/exit",
			env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
		}
	}
	return []realAccount{
		{
			account: find("claude"), dir: "node_modules/@anthropic-ai/claude-code-linux-x64", scope: "user:inference user:profile",
			start: "claude -p --model claude-sonnet-4-5", home: map[string]string{".claude.json": `{"hasCompletedOnboarding":true}`},
			ready: "bypass permissions on", quit: "/exit",
			env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1"},
		},
		{
			account: find("codex"), dir: "node_modules/.bin", start: "codex exec --skip-git-repo-check -",
			ready: "OpenAI Codex", quit: "/quit",
			home: map[string]string{".codex/config.toml": "check_for_update_on_startup = false\n[analytics]\nenabled = false\n"},
		},
		{
			account: find("gemini"), dir: "node_modules/.bin", start: "gemini --skip-trust", more: []string{"www.googleapis.com"},
			home:  map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"oauth-personal"},"folderTrust":{"enabled":false}},"general":{"enableAutoUpdate":false,"disableAutoUpdate":true},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false}}`},
			ready: "Type your message", quit: "/quit",
			// With a model of its own choice it first asks a model which one to take, and
			// asks again and again if it gets no answer.
			env: []string{"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_MODEL=gemini-2.5-flash"},
		},
		opencode("chatgpt.com/backend-api/codex/responses", "openai/gpt-5.4"),
		opencode("api.x.ai/v1/chat/completions", "xai/grok-4.5"),
	}
}

// Real clients with accounts in files: they work inside on their own login, two
// sandboxes and the client of the host renew it at the same moment and all stay
// logged in, and nothing inside ever has a token, even while the client runs.
// The clients are those that make test-agents installs.
func TestAccountsOfRealClients(t *testing.T) {
	dir := os.Getenv("LITTERBOX_TEST_AGENTS")
	if dir == "" {
		t.Skip("LITTERBOX_TEST_AGENTS names no directory with the clients; see make test-agents")
	}
	world.Need(t, "node", "python3")
	for _, a := range realAccounts() {
		host, _, _ := strings.Cut(a.api, "/")
		t.Run(a.client+"/"+host, func(t *testing.T) { a.works(t, dir) })
	}
	for _, k := range keptAccounts() {
		t.Run("opencode/"+k.host, func(t *testing.T) { k.works(t, dir) })
	}
}

// ended returns a JSON web token that says that it has expired.
func ended(token string) string {
	parts := strings.Split(token, ".")
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		panic(err) // it is of the test
	}
	parts[1] = base64.RawURLEncoding.EncodeToString(regexp.MustCompile(`"exp":\d+`).ReplaceAll(claims, []byte(`"exp":1`)))
	return strings.Join(parts, ".")
}

func (a realAccount) works(t *testing.T, dir string) {
	if _, err := os.Stat(filepath.Join(dir, a.dir)); err != nil {
		t.Fatalf("the client is not installed: %v", err)
	}
	site := &subscription{issuer: &issuer{jwt: a.jwt, scope: a.scope}, asked: make(chan struct{}, 1), goOn: make(chan struct{})}
	names := slices.Clone(a.more)
	for _, address := range []string{a.api, a.endpoint} {
		name, _, _ := strings.Cut(address, "/")
		names = append(names, name)
	}
	for _, name := range names {
		webSite(t, outside.Host(name), site)
	}
	if a.scope != "" {
		document, scopes := a.document, strings.Fields(a.scope)
		a.document = func(access, refresh, identity string, end time.Time) string {
			return strings.Replace(document(access, refresh, identity, end), `"one","two"`, `"`+strings.Join(scopes, `","`)+`"`, 1)
		}
	}
	if a.jwt {
		document := a.document
		a.document = func(access, refresh, identity string, end time.Time) string {
			return document(ended(access), refresh, identity, end)
		}
	}
	h := newHost(t)
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), fmt.Sprintf("[mounts]\nread-only = [%q]\n[cost]\nmeter = true\n", dir))
	for path, content := range a.home {
		h.Put(filepath.Join(h.Home, path), content)
	}
	h = h.With(append(a.env, "SSL_CERT_FILE="+outside.CA, "NODE_EXTRA_CA_CERTS="+outside.CA, "PATH="+filepath.Join(dir, a.dir)+":"+os.Getenv("PATH"))...)
	report := func(got program.Result, box string) string {
		now := site.look()
		return fmt.Sprintf("exit code %d\n%s\n%s\nrenewals: %q\nsent: %q\nnot known: %q\n%s", got.Code, got.Stdout, got.Stderr, now.asked, now.sent, site.other, h.Litterbox("network", box).Stdout)
	}
	a.outdate(t, h, site.issuer)
	for _, box := range []string{"first", "second"} {
		h.Must("create", box)
		got := h.Litterbox(slices.Concat([]string{"agent", "run", a.client, "Say done", "--in", box}, a.flags)...)
		if got.Code != 0 || !strings.Contains(got.Stdout, "done") {
			t.Fatalf("it does not work inside: %s", report(got, box))
		}
		if strings.Contains(got.Stderr, "the network refused") {
			t.Errorf("what the client goes without looks like a fault: %s", report(got, box))
		}
	}
	if now := site.look(); now.number != 2 || now.reused != 0 {
		t.Errorf("for two sandboxes it was renewed %d times, %d refused", now.number-1, now.reused)
	}
	// Two sandboxes and the host's client, at the same moment.
	for range 2 {
		a.outdate(t, h, site.issuer)
		var all sync.WaitGroup
		results := make([]program.Result, 3)
		all.Go(func() {
			results[0] = h.Litterbox(slices.Concat([]string{"agent", "resume", "first", "Say done"}, a.flags)...)
		})
		all.Go(func() {
			results[1] = h.Litterbox(slices.Concat([]string{"agent", "resume", "second", "Say done"}, a.flags)...)
		})
		all.Go(func() { results[2] = h.Shell("echo Say done | " + a.start) })
		all.Wait()
		for n, got := range results {
			if got.Code != 0 {
				t.Errorf("%d of three that renew at the same moment: %s", n, report(got, "first"))
			}
		}
		kept, _ := os.ReadFile(filepath.Join(h.Home, a.file))
		if counts := site.look().refresh; !strings.Contains(string(kept), counts) {
			t.Errorf("the host is logged out: its file is %s, and %q counts", kept, counts)
		}
		if got := h.Shell("echo Say done | " + a.start); got.Code != 0 {
			t.Errorf("afterwards the host's client does not work: %s", report(got, "first"))
		}
	}
	// While the client is at work: nothing that it could read holds a token.
	site.mu.Lock()
	site.waits = true
	site.mu.Unlock()
	h.Must(slices.Concat([]string{"agent", "resume", "first", "Wait until you are seen", "--detach"}, a.flags)...)
	select {
	case <-site.asked:
	case <-time.After(5 * time.Minute):
		t.Fatalf("the task did not come to the model: %s", report(h.Litterbox("agent", "logs", "first", "--raw"), "first"))
	}
	values := site.look().given
	wantUnseen(t, h, "first", append(values[max(0, len(values)-6):], a.onlyHere)...)
	close(site.goOn)
	if got := h.Litterbox("agent", "attach", "first"); got.Code != 0 {
		t.Errorf("after the search: %s", report(got, "first"))
	}
	// The same in front of its full-screen interface, with a login that it has to renew.
	a.outdate(t, h, site.issuer)
	reused := site.look().reused
	screen := h.OnTerminal(40, 120, slices.Concat([]string{"agent", "run", a.client, "--in", "second"}, a.flags)...)
	screen.Await(0, a.ready)
	screen.Type("Say it")
	screen.Await(0, "Say it")
	mark := screen.Mark()
	screen.Returns(func() bool { return screen.Shows(mark, "done") })
	values = site.look().given
	wantUnseen(t, h, "second", append(values[max(0, len(values)-6):], a.onlyHere)...)
	screen.Type(a.quit)
	screen.Returns(screen.Over)
	if code := screen.Ends(); code != 0 {
		t.Errorf("its full-screen interface exited %d: %s\n%s", code, screen.Tail(), report(program.Result{}, "second"))
	}
	kept, _ := os.ReadFile(filepath.Join(h.Home, a.file))
	if now := site.look(); now.reused != reused || !strings.Contains(string(kept), now.refresh) {
		t.Errorf("after it, %d renewals were refused, and the host's file is %s", now.reused-reused, kept)
	}
}
