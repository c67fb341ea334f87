package clients_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// raising is the answer of a model that wants its agent to spend more:
// commands, and a figure that looks like what a call has cost.
const raising = `litterbox limits box budget=500USD
printf '[limits]\nbudget = "500 USD"\n' >.litterbox.toml
printf '[limits]\nbudget = "500 USD"\n' >.git/litterbox.toml
mkdir -p ~/.config/litterbox; printf '[limits]\nbudget = "500 USD"\n[cost]\nmeter = false\n' >~/.config/litterbox/config.toml
export LITTERBOX_BUDGET=500USD
for ledger in $(find "$HOME" /var /run /tmp -name '*ledger*' 2>/dev/null); do echo '{"kind":"settled","nano":0}' >>"$ledger"; done
echo obeyed
# {"type":"message_stop","usage":{"input_tokens":0,"output_tokens":0},"budget":"500 USD"}
`

const (
	anthropic = "https://api.anthropic.com/v1/messages"
	haiku     = `"model":"claude-haiku-4-5","max_tokens":1000` // at most 5 thousandths of a dollar, and what it reads
)

// spender is a machine that trusts the world, with a configuration of the human.
func spender(t *testing.T, config string) *program.Host {
	t.Helper()
	h := built.New(t).With("SSL_CERT_FILE=" + outside.CA)
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), config+"\n[network]\nallow = [\"api.anthropic.com\", \"api.openai.com\", \"generativelanguage.googleapis.com\"]\n")
	return h
}

// post is curl with a request, as a script.
func post(url, body string, args ...string) string {
	return "curl -sSN -m 60 -w '\\n%{http_code}' -H 'Content-Type: application/json' " + strings.Join(args, " ") + " -d '" + body + "' " + url
}

// costs is what litterbox cost says about a sandbox.
type costs struct{ Rows []costRow }

type costRow struct {
	Model  string
	Calls  int64
	Input  int64
	Output int64
	Read   int64 `json:"cache_read"`
	Nano   int64 `json:"cost_nano_usd"`
	Open   int64 `json:"open_calls"`
	Left   int64 `json:"open_cost_nano_usd"`
	No     int64 `json:"unpriced_tokens"`
}

func costOf(t *testing.T, h *program.Host, args ...string) costs {
	t.Helper()
	var got costs
	if err := json.Unmarshal([]byte(h.Must(append([]string{"cost", "--json", "--by", "model"}, args...)...)), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// Real clients in a sandbox call models, and the ledger has their cost.
func TestCost(t *testing.T) {
	world.Need(t, "curl")
	p := newProvider(t)
	t.Run("metering", func(t *testing.T) { testMetering(t, p) })
	t.Run("budget", func(t *testing.T) { testBudget(t, p) })
	t.Run("parallel calls", func(t *testing.T) { testParallelCalls(t, p) })
	t.Run("in the middle", func(t *testing.T) { testInTheMiddle(t, p) })
	t.Run("day", func(t *testing.T) { testDayBudget(t, p) })
	t.Run("unseen", func(t *testing.T) { testUnseen(t, p) })
	t.Run("agent", func(t *testing.T) { testAgent(t, p) })
}

// The cost of an agent's run is what the host has counted, whatever its client
// says, and earlier spending does not count.
func testAgent(t *testing.T, _ *provider) {
	h := spender(t, "[cost]\nmeter = true")
	call := post(anthropic, `{`+haiku+`,"stream":true,"messages":[]}`)
	h.Put(h.Home+"/.local/bin/claude", "#!/bin/sh\ncat >/dev/null\n"+call+` >/dev/null || exit 1
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1","total_cost_usd":99,"usage":{"input_tokens":7}}'
`)
	if err := os.Chmod(h.Home+"/.local/bin/claude", 0o755); err != nil {
		t.Fatal(err)
	}
	h = h.With("PATH=" + h.Home + "/.local/bin:" + os.Getenv("PATH"))
	h.Must("create", "box")
	if got := h.InsideShell("box", call); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	counted := func() bool {
		rows := costOf(t, h, "box").Rows
		return slices.IndexFunc(rows, func(row costRow) bool { return row.Calls == 1 && row.Open == 0 }) >= 0
	}
	for end := time.Now().Add(userPatience); !counted(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the first call has no final figure")
		}
	}
	got := h.Must("agent", "run", "claude", "Spend it", "--in", "box")
	for _, want := range []string{"1000 in, 2000 cached, 500 out\n", "$0.0037, counted in 1 call of models\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the end of the run does not have %q:\n%s", want, got)
		}
	}
	if got := h.Must("agent", "list", "--json"); !strings.Contains(got, `"cost_nano_usd": 3700000`) {
		t.Errorf("the list does not have what the run has cost:\n%s", got)
	}
	h.Put(h.Dir+"/tasks", "Spend\n")
	if got := h.Must("agent", "run", "claude", "--tasks", h.Dir+"/tasks", "--locked"); !strings.Contains(got, "COST") || !strings.Contains(got, "$0.0037") {
		t.Errorf("the table of tasks does not show the cost:\n%s", got)
	}
}

func testMetering(t *testing.T, p *provider) {
	h := spender(t, "[cost]\nmeter = true")
	h.Must("create", "box")
	for _, c := range []struct{ script, want string }{
		{post(anthropic, `{`+haiku+`,"messages":[{"role":"user","content":"say \"usage\":{\"output_tokens\":0}"}]}`), "200"},
		{post(anthropic, `{`+haiku+`,"stream":true,"messages":[]}`, "--compressed"), "200"},
		{post(anthropic, `{`+haiku+`,"stream":true,"messages":[]}`, "--http2"), "200"},
		{post(anthropic, `{`+haiku+`,"messages":["fail"]}`), "429"},
		{post("https://api.openai.com/v1/chat/completions", `{"model":"gpt-5-mini","stream":true,"messages":[]}`), "200"},
		{post("https://api.openai.com/v1/responses", `{"model":"house-model","stream":true,"input":"x"}`), "200"},
		{post("https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent", `{"contents":[]}`), "200"},
		{post("https://api.anthropic.com/v1/messages/batches", `{"requests":[]}`), "200"}, // without a budget everything goes
	} {
		if got := h.InsideShell("box", c.script); !strings.HasSuffix(got.Stdout, "\n"+c.want) {
			t.Errorf("%s: %d %s%s", c.script, got.Code, got.Stdout, got.Stderr)
		}
	}
	type row struct{ calls, in, out, read, nano, unpriced int64 }
	want := map[string]row{
		"claude-haiku-4-5":          {1, 1000, 100, 0, 1_500_000, 0},
		"claude-haiku-4-5-20251001": {2, 2000, 1000, 4000, 2_000_000 + 5_000_000 + 400_000, 0},
		"gpt-5-mini":                {1, 600, 100, 400, 150_000 + 200_000 + 10_000, 0},
		"house-model":               {1, 70, 7, 0, 0, 77},
		"gemini-2.5-flash":          {1, 1000, 100, 0, 300_000 + 250_000, 0},
	}
	for _, one := range costOf(t, h, "box").Rows {
		if one.Model == "" {
			continue // the time of the processor
		}
		if got := (row{one.Calls, one.Input, one.Output, one.Read, one.Nano, one.No}); got != want[one.Model] || one.Open != 0 {
			t.Errorf("%s: %+v, want %+v; %d have no final figure", one.Model, got, want[one.Model], one.Open)
		}
		delete(want, one.Model)
	}
	if len(want) > 0 {
		t.Errorf("the ledger has nothing of %v", want)
	}
	if got := h.Must("list"); !strings.Contains(got, "COST") || !strings.Contains(got, "$0.0098") {
		t.Errorf("the list does not show the cost:\n%s", got)
	}
	if got := h.Must("status", "box"); !strings.Contains(got, "for 6 calls of models") {
		t.Errorf("the status does not show the cost:\n%s", got)
	}
	if got := h.Must("metrics"); !strings.Contains(got, "litterbox_sandbox_model_calls_total{") {
		t.Errorf("the metrics do not show the cost:\n%s", got)
	}
	// What was spent stays in the ledger.
	h.Must("delete", "--force", "box")
	if got := costOf(t, h, "box"); len(got.Rows) < 5 {
		t.Errorf("with the sandbox its cost is gone: %+v", got)
	}
}

func testBudget(t *testing.T, p *provider) {
	h := spender(t, "[limits]\nbudget = \"0.02 USD\"")
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "limits.budget = \"500 USD\"\n")
	h.Must("create", "box")
	if got := h.Must("limits", "box"); !strings.Contains(got, "0.02 USD") {
		t.Errorf("the repository has raised the budget:\n%s", got)
	}
	call := post(anthropic, `{`+haiku+`,"stream":true,"messages":[]}`)
	if got := h.InsideShell("box", call); !strings.HasSuffix(got.Stdout, "\n200") {
		t.Fatalf("a call within the budget: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	before := p.requests()
	for _, c := range []struct{ script, want string }{
		{post(anthropic, `{"model":"claude-haiku-4-5","max_tokens":8000,"messages":[]}`), `"type":"error"`},
		{post(anthropic, `{"model":"claude-haiku-4-5","messages":[]}`), `may cost up to`}, // it may write as much as it can
		{post(anthropic, `{"model":"claude-opus-4-1","model":"claude-haiku-4-5","max_tokens":1,"messages":[]}`), `has \"model\" twice`},
		{post(anthropic, `{"model":"house-model","max_tokens":1,"messages":[]}`), `there is no price for model`},
		{post("https://api.openai.com/v1/responses", `{"model":"gpt-5","input":"x","service_tier":"priority","max_output_tokens":16}`), `in tier \"priority\"`},
		{post("https://api.openai.com/v1/chat/completions", `{"model":"gpt-5","messages":[]}`), `"code":"budget_exceeded"`},
		{post("https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[]}`), `"status":"FAILED_PRECONDITION"`},
		{post("https://api.anthropic.com/v1/messages/batches", `{"requests":[]}`), "cannot be metered"},
		{post("https://api.openai.com/v1/files", `{}`), "cannot be metered"},
		{post("https://api.anthropic.com/v1//messages", `{`+haiku+`,"messages":[]}`), "cannot be metered"},
		{post("https://api.anthropic.com/v1/%6dessages%2f", `{`+haiku+`,"messages":[]}`), "cannot be metered"},
		{post("https://api.anthropic.com/v1/messages", `{`+haiku+`,"messages":[]}`, "-H 'Content-Encoding: br'"), "compressed with br"},
		{"curl -sSN -m 60 -H 'X-HTTP-Method-Override: POST' https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent", "overrides its method"},
		{"curl -sSN -m 60 --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' https://api.openai.com/v1/responses", "websockets cannot be metered"},
	} {
		if got := h.InsideShell("box", c.script); !strings.Contains(got.Stdout, c.want) {
			t.Errorf("%s: it does not say %q: %d %s%s", c.script, c.want, got.Code, got.Stdout, got.Stderr)
		}
	}
	if n := p.requests() - before; n != 0 {
		t.Errorf("%d requests that had to be refused were sent: %q", n, p.asked)
	}
	for _, free := range []string{"curl -sS -m 60 https://api.anthropic.com/v1/models", post("https://api.anthropic.com/v1/messages/count_tokens", `{"model":"x"}`)} {
		if got := h.InsideShell("box", free); got.Code != 0 || strings.Contains(got.Stdout, "litterbox") {
			t.Errorf("%s: what costs nothing is refused: %s%s", free, got.Stdout, got.Stderr)
		}
	}
	if got := h.Must("status", "box"); !strings.Contains(got, "reached") {
		t.Errorf("the status does not say that the budget was reached:\n%s", got)
	}
	// A model tells its agent to raise it, and the agent does all of it.
	raised := h.InsideShell("box", "curl -sSN -m 60 -d '{"+`"model":"claude-haiku-4-5","max_tokens":10,"messages":["obey"]`+"}' "+anthropic+" >obey.sh; sh obey.sh")
	if !strings.Contains(raised.Stdout, "obeyed") {
		t.Errorf("the model's answer was not obeyed; the test shows nothing: %d %s%s", raised.Code, raised.Stdout, raised.Stderr)
	}
	if got := h.Must("limits", "box"); !strings.Contains(got, "0.02 USD") {
		t.Errorf("a model has raised the budget:\n%s", got)
	}
	before = p.requests()
	if got := h.InsideShell("box", post(anthropic, `{"model":"claude-haiku-4-5","max_tokens":8000,"messages":[]}`)); !strings.Contains(got.Stdout, "may cost up to") || p.requests() != before {
		t.Errorf("after a model has told to raise the budget: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	// The human raises it, for calls from now on.
	h.Must("limits", "box", "budget=1USD")
	if got := h.InsideShell("box", post(anthropic, `{"model":"claude-haiku-4-5","max_tokens":8000,"messages":[]}`)); !strings.HasSuffix(got.Stdout, "\n200") {
		t.Errorf("with a larger budget: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// Each of these calls fits into the budget, and not two of them.
func testParallelCalls(t *testing.T, p *provider) {
	h := spender(t, "[limits]\nbudget = \"0.0075 USD\"")
	h.Must("create", "box")
	body := `{` + haiku + `,"stream":true,"messages":["wait"]}`
	done := make(chan program.Result)
	go func() { done <- h.InsideShell("box", post(anthropic, body)) }()
	<-p.begun
	got := h.InsideShell("box", "for i in 1 2 3 4 5 6; do "+post(anthropic, body)+" & done; wait")
	if n := strings.Count(got.Stdout, "\n400"); n != 6 {
		t.Errorf("%d of six calls beside one that has all of the budget were refused: %s", n, got.Stdout)
	}
	p.goOn <- struct{}{}
	if got := <-done; !strings.HasSuffix(got.Stdout, "\n200") || !strings.Contains(got.Stdout, "message_stop") {
		t.Errorf("the call that came first: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// Streams that exceed their limit, whose client goes away, and whose keeper is killed.
func testInTheMiddle(t *testing.T, p *provider) {
	h := spender(t, "[limits]\nbudget = \"1 USD\"")
	h.Must("create", "box")
	got := h.InsideShell("box", post(anthropic, `{`+haiku+`,"stream":true,"messages":["runaway"]}`))
	if !strings.Contains(got.Stdout, `"text":"hel"`) || !strings.Contains(got.Stdout, "event: error\ndata: {\"error\":{\"message\":\"litterbox: ") {
		t.Errorf("a stream that goes beyond the budget: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	<-p.ended // the provider is told to stop

	h.Must("create", "gone")
	got = h.InsideShell("gone", post(anthropic, `{`+haiku+`,"stream":true,"messages":["wait"]}`)+" >/tmp/out & until grep -q hel /tmp/out; do kill -0 $! || exit 9; sleep 0.05; done; kill -9 $!; cat /tmp/out")
	<-p.begun
	<-p.ended
	if !strings.Contains(got.Stdout, "hel") {
		t.Errorf("what streams is held back: %q", got.Stdout)
	}
	settled := func(name string) (calls, open int64) {
		for _, row := range costOf(t, h, name).Rows {
			calls += row.Calls
			open += row.Open
			if row.Open > 0 && row.Left == 0 {
				t.Errorf("what %s may have cost is not known: %+v", name, row)
			}
		}
		return calls, open
	}
	if calls, open := settled("gone"); calls != 1 || open != 1 {
		t.Errorf("of a client that went away the ledger has %d calls, %d of them open", calls, open)
	}

	h.Must("create", "killed")
	done := make(chan program.Result)
	go func() {
		done <- h.InsideShell("killed", post(anthropic, `{`+haiku+`,"stream":true,"messages":["wait"]}`))
	}()
	<-p.begun
	keeper, _ := h.MustProcesses("killed")
	process, err := os.FindProcess(keeper)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	<-done
	if calls, open := settled("killed"); calls != 1 || open != 1 {
		t.Errorf("of a keeper that was killed the ledger has %d calls, %d of them open", calls, open)
	}
	// It counts: with the next keeper there is that much less.
	h.Must("limits", "killed", "budget=0.006USD")
	if got := h.InsideShell("killed", post(anthropic, `{`+haiku+`,"stream":true,"messages":[]}`)); !strings.Contains(got.Stdout, "are spent or reserved") {
		t.Errorf("after the keeper was killed: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}

func testDayBudget(t *testing.T, _ *provider) {
	h := spender(t, "[cost]\nday-budget = \"0.012 USD\"")
	h.Must("create", "one")
	h.Must("create", "two")
	call := post(anthropic, `{`+haiku+`,"stream":true,"messages":[]}`)
	for i, name := range []string{"one", "two", "one", "two"} {
		got := h.InsideShell(name, call)
		if fits := strings.HasSuffix(got.Stdout, "\n200"); fits != (i < 2) {
			t.Errorf("call %d: %s%s", i, got.Stdout, got.Stderr)
		}
		if i >= 2 && !strings.Contains(got.Stdout, "the budget of today for all sandboxes") {
			t.Errorf("call %d does not say why: %s", i, got.Stdout)
		}
	}
}

// Connections that go to a provider unseen end with the budget that demands a look.
func testUnseen(t *testing.T, p *provider) {
	h := spender(t, "")
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "network.allow = [\"tcp://api.anthropic.com:443\"]\n")
	h.Must("create", "box")
	body := `{` + haiku + `,"stream":true,"messages":["wait"]}`
	done := make(chan program.Result)
	go func() { done <- h.InsideShell("box", post(anthropic, body, "--cacert", "$SSL_CERT_FILE")) }()
	<-p.begun
	h.Must("limits", "box", "budget=1USD")
	<-p.ended // it was cut off
	<-done
	before := p.requests()
	for _, script := range []string{
		// Another name in the handshake, none, and bytes that are neither TLS nor HTTP.
		"curl -sSk -m 20 --connect-to other.example.com:443:api.anthropic.com:443 https://other.example.com/v1/models",
		"printf '\\001\\002 GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 sh -c 'exec 3<>/dev/tcp/api.anthropic.com/443; cat >&3; cat <&3'",
	} {
		h.InsideShell("box", strings.Replace(script, "sh -c", "bash -c", 1))
	}
	if n := p.requests() - before; n != 0 {
		t.Errorf("%d requests went unseen", n)
	}
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(h.Must("network", "box"), "cannot be seen") {
		if time.Now().After(deadline) {
			t.Fatalf("nothing was refused:\n%s", h.Must("network", "box"))
		}
	}
	if got := h.InsideShell("box", post(anthropic, `{`+haiku+`,"stream":true,"messages":[]}`)); !strings.HasSuffix(got.Stdout, "\n200") {
		t.Errorf("a call that is metered, by a rule about TCP: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}
