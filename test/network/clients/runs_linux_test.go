package clients_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// keyedClient is a real client that is logged in by a key.
type keyedClient struct {
	name, dir string // of its program, below the installation
	host      string // of its model
	key       string // the variable
	flags     []string
}

func keyedClients() []keyedClient {
	return []keyedClient{
		{"claude", "node_modules/@anthropic-ai/claude-code-linux-x64", "api.anthropic.com", "ANTHROPIC_API_KEY", []string{"--model", "claude-haiku-4-5"}},
		{"codex", "node_modules/.bin", "api.openai.com", "CODEX_API_KEY", []string{"--model", "gpt-5"}},
		{"gemini", "node_modules/.bin", "generativelanguage.googleapis.com", "GEMINI_API_KEY", []string{"--model", "gemini-2.5-flash"}},
		{"opencode", "node_modules/opencode-linux-x64-baseline/bin", "api.anthropic.com", "ANTHROPIC_API_KEY", []string{"--model", "anthropic/claude-haiku-4-5", "-e", "OPENCODE_DISABLE_MODELS_FETCH=1"}},
	}
}

// worker stands in for a model that works: what a task is called decides what
// comes of it. It speaks the three wire formats, streaming.
type worker struct {
	seen chan struct{} // a task waits, after its tool has written a file
	goOn chan struct{} // closed at the end
}

var workerTasks = []string{"Work-alpha", "Fail-beta", "Spend-gamma", "Wait-delta", "Go-on"}

func (m *worker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text, task, at := string(body), "", -1
	for _, one := range workerTasks {
		if found := strings.LastIndex(text, one); found > at {
			task, at = one, found
		}
	}
	path := r.URL.Path
	isModel := strings.HasSuffix(path, "/v1/messages") || strings.HasSuffix(path, "/v1/responses") || strings.HasSuffix(path, ":streamGenerateContent")
	tool, args := toolCall(text, `printf 'out-%s' put-of-`+task+`; echo x >`+task+`.txt`)
	switch {
	case !isModel:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"models":[],"data":[],"candidates":[{"content":{"role":"model","parts":[{"text":"done"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`)
	case tool == "" || task == "": // a title, or the like
		m.stream(w, path, "done", "", nil, 1)
	case task == "Fail-beta":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"there is no beta","code":400,"status":"INVALID_ARGUMENT"}}`)
	case task == "Spend-gamma": // clients whose last event says what was spent find out by the next call
		m.stream(w, path, "", tool, args, 9_000_000)
	case !strings.Contains(text, "out-put-of-"+task):
		m.stream(w, path, "", tool, args, 1)
	case task == "Wait-delta":
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		select {
		case m.seen <- struct{}{}:
		default:
		}
		select {
		case <-m.goOn:
		case <-r.Context().Done():
		}
	default:
		m.stream(w, path, "done", "", nil, 1)
	}
}

// toolCall is a call of the tool that runs commands, as the client has named it.
func toolCall(request, command string) (name string, args map[string]any) {
	for _, one := range []struct {
		name string
		args map[string]any
	}{
		{"Bash", map[string]any{"command": command, "description": "work"}},
		{"bash", map[string]any{"command": command, "description": "work"}},
		{"run_shell_command", map[string]any{"command": command, "description": "work"}},
		{"exec_command", map[string]any{"cmd": command}},
		{"shell_command", map[string]any{"command": command}},
		{"shell", map[string]any{"command": []string{"bash", "-c", command}}},
	} {
		if regexp.MustCompile(`"name": ?"` + one.name + `"`).MatchString(request) {
			return one.name, one.args
		}
	}
	return "", nil
}

// stream answers with text, or with the call of a tool, and says how many tokens
// that were.
func (m *worker) stream(w http.ResponseWriter, path, text, tool string, args any, tokens int) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(value map[string]any) {
		data, _ := json.Marshal(value) // it is of the test
		if name, ok := value["type"].(string); ok {
			_, _ = fmt.Fprintf(w, "event: %s\n", name)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		_ = http.NewResponseController(w).Flush()
	}
	given, _ := json.Marshal(args)
	type object = map[string]any
	switch {
	case strings.HasSuffix(path, "/v1/messages"):
		block, delta, stop := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": text}, "end_turn"
		if tool != "" {
			block = object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", time.Now().UnixNano()), "name": tool, "input": object{}}
			delta, stop = object{"type": "input_json_delta", "partial_json": string(given)}, "tool_use"
		}
		event(object{"type": "message_start", "message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1}}})
		event(object{"type": "content_block_start", "index": 0, "content_block": block})
		event(object{"type": "content_block_delta", "index": 0, "delta": delta})
		event(object{"type": "content_block_stop", "index": 0})
		event(object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": tokens}})
		event(object{"type": "message_stop"})
	case strings.HasSuffix(path, "/v1/responses"):
		item := object{"type": "message", "role": "assistant", "id": "msg_1", "content": []any{object{"type": "output_text", "text": text}}}
		if tool != "" {
			item = object{"type": "function_call", "id": "fc_1", "call_id": fmt.Sprintf("call_%d", time.Now().UnixNano()), "name": tool, "arguments": string(given)}
		}
		event(object{"type": "response.created", "response": object{"id": "resp_1"}})
		event(object{"type": "response.output_item.done", "output_index": 0, "item": item})
		event(object{"type": "response.completed", "response": object{"id": "resp_1", "model": "gpt-5",
			"usage": object{"input_tokens": 1, "input_tokens_details": nil, "output_tokens": tokens, "output_tokens_details": nil, "total_tokens": 1 + tokens}}})
	default:
		part := object{"text": text}
		if tool != "" {
			part = object{"functionCall": object{"id": fmt.Sprintf("call_%d", time.Now().UnixNano()), "name": tool, "args": args}}
		}
		event(object{
			"candidates":    []any{object{"index": 0, "content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
			"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": tokens, "totalTokenCount": 1 + tokens}, "modelVersion": "gemini-2.5-flash",
		})
	}
}

// Real clients with a key work on several tasks at once: one that fails and one
// that spends its budget in the middle of a stream take no other along. A client
// and a keeper that are killed lose no work, and the conversation goes on. The
// clients are those that make test-agents installs.
func TestRunsOfRealClients(t *testing.T) {
	dir := os.Getenv("LITTERBOX_TEST_AGENTS")
	if dir == "" {
		t.Skip("LITTERBOX_TEST_AGENTS names no directory with the clients; see make test-agents")
	}
	world.Need(t, "node")
	for _, c := range keyedClients() {
		t.Run(c.name, func(t *testing.T) { c.works(t, dir) })
	}
}

func (c keyedClient) works(t *testing.T, dir string) {
	if _, err := os.Stat(filepath.Join(dir, c.dir)); err != nil {
		t.Fatalf("the client is not installed: %v", err)
	}
	model := &worker{seen: make(chan struct{}, 1), goOn: make(chan struct{})}
	t.Cleanup(func() { close(model.goOn) })
	webSite(t, outside.Host(c.host), model)
	h := newHost(t)
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), fmt.Sprintf("[mounts]\nread-only = [%q]\n[cost]\nmeter = true\n", dir))
	h.Put(filepath.Join(h.Dir, "tasks.txt"), "Work-alpha now\nFail-beta now\nSpend-gamma now\n")
	key := "sk-ant-api03-" + strings.Repeat("kEy_", 12)
	h = h.With("SSL_CERT_FILE="+outside.CA, "PATH="+filepath.Join(dir, c.dir)+":"+os.Getenv("PATH"), c.key+"="+key)
	run := func(args ...string) program.Result { return h.Litterbox(slices.Concat(args, c.flags)...) }

	got := run("agent", "run", c.name, "--tasks", filepath.Join(h.Dir, "tasks.txt"), "--parallel", "3", "--budget", "5 USD")
	report := func(got program.Result) string {
		return fmt.Sprintf("exit code %d\n%s\n%s\n%s", got.Code, got.Stdout, got.Stderr, h.Litterbox("agent", "list").Stdout)
	}
	t.Log(report(got))
	if got.Code != 1 {
		t.Errorf("of three tasks two fail, and it exited %d", got.Code)
	}
	for box, outcome := range map[string]string{"work-alpha-now": "completed ", "fail-beta-now": "failed", "spend-gamma-now": "failed"} {
		if !regexp.MustCompile(`(?m)^` + box + ` +` + outcome).MatchString(got.Stdout) {
			t.Errorf("%s has no row that says %s", box, outcome)
		}
		log := h.Must("agent", "logs", box)
		for _, other := range []string{"alpha", "beta", "gamma"} {
			if !strings.Contains(box, other) && strings.Contains(log, other) {
				t.Errorf("the log of %s has the task %s:\n%s", box, other, log)
			}
		}
	}
	if got := h.Must("status", "spend-gamma-now"); !strings.Contains(got, "reached") {
		t.Errorf("the status does not say that the budget was reached:\n%s", got)
	}
	c.committed(t, h, "work-alpha-now", "Work-alpha.txt")
	for _, box := range []string{"work-alpha-now", "fail-beta-now"} {
		if got := run("agent", "resume", box, "Go-on please"); got.Code != 0 {
			t.Errorf("%s does not go on: %s", box, report(got))
		} else if strings.Contains(got.Stderr, "the network refused") {
			t.Errorf("what the client goes without looks like a fault: %s", report(got))
		}
		c.committed(t, h, box, "Go-on.txt")
	}

	for box, end := range map[string]func(){
		"client": func() {
			h.InsideShell("client", `for p in /proc/[0-9]*; do n=${p#/proc/}; [ $n = 1 ] || [ $n = $$ ] || kill -9 $n; done 2>/dev/null; true`)
		},
		"keeper": func() {
			keeper, _ := h.MustProcesses("keeper")
			if err := (&os.Process{Pid: keeper}).Kill(); err != nil {
				t.Error(err)
			}
		},
	} {
		if got := run("agent", "run", c.name, "Wait-delta now", "--name", box, "--detach"); got.Code != 0 {
			t.Fatal(report(got))
		}
		select {
		case <-model.seen:
		case <-time.After(5 * time.Minute):
			t.Fatalf("the task did not come to the model: %s", report(h.Litterbox("agent", "logs", box, "--raw")))
		}
		end()
		if got := h.Litterbox("agent", "attach", box); got.Code == 0 {
			t.Errorf("the %s was killed, and the run counts as completed: %s", box, report(got))
		}
		h.Must("exec", box, "--", "true")
		c.committed(t, h, box, "Wait-delta.txt")
		if got := run("agent", "resume", box, "Go-on please"); got.Code != 0 {
			t.Errorf("after its %s was killed it does not go on: %s", box, report(got))
		}
		c.committed(t, h, box, "Go-on.txt")
		wantUnseen(t, h, box, key)
	}
}

// committed reports a file that is not on the sandbox's branch.
func (c keyedClient) committed(t *testing.T, h *program.Host, box, file string) {
	t.Helper()
	if got := h.Command(h.Repo, "git", "show", box+":"+file); got.Stdout != "x\n" {
		t.Errorf("%s is not on the branch %s: %+v\n%s", file, box, got, h.Litterbox("agent", "logs", box).Stdout)
	}
}
