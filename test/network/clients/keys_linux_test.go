package clients_test

import (
	"os"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// keyed is a stand-in for Claude Code: it asks its model once, with the key
// that its environment holds, and keeps what it sent.
const keyed = `#!/bin/sh
task=$(cat)
printf %s "$ANTHROPIC_API_KEY" >"$HOME/key"
answer=$(curl -sSf -m 60 -H "x-api-key: $ANTHROPIC_API_KEY" -d "$task" "$ANTHROPIC_BASE_URL/v1/ask" 2>&1) || { echo "$answer" >&2; exit 1; }
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"stand-in"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1"}'
`

// The key in the human's environment works for an agent, in a sandbox that runs
// already and in one that is started later, and is never inside.
func TestKeysOfAgentsStayOutside(t *testing.T) {
	t.Parallel()
	world.Need(t, "curl", "python3")
	site := &told{}
	host := outside.Host("models.outside.example")
	webSite(t, host, site)
	key := "sk-ant-api03-" + strings.Repeat("kEy_", 12)
	h := newHost(t)
	h.Put(h.Home+"/.local/bin/claude", keyed)
	if err := os.Chmod(h.Home+"/.local/bin/claude", 0o755); err != nil {
		t.Fatal(err)
	}
	h = h.With("SSL_CERT_FILE="+outside.CA, "PATH="+h.Home+"/.local/bin:"+os.Getenv("PATH"), "ANTHROPIC_BASE_URL=https://"+host.Name)
	h.Must("create", "box")
	h = h.With("ANTHROPIC_API_KEY=" + key)
	for _, task := range []string{"Ask once", "Ask again", "Ask at last"} {
		command := []string{"agent", "resume", "box", task}
		switch task {
		case "Ask once":
			command = []string{"agent", "run", "claude", task, "--in", "box"}
		case "Ask at last":
			h.Must("stop", "box")
		}
		got := h.Litterbox(command...)
		if got.Code != 0 {
			t.Fatalf("%q exited %d: %s%s", command, got.Code, got.Stdout, got.Stderr)
		}
		if strings.Contains(got.Stdout+got.Stderr, key) {
			t.Errorf("the key is shown: %s%s", got.Stdout, got.Stderr)
		}
		if !site.has("X-Api-Key: "+key) || !site.has(task) {
			t.Errorf("%q: the model was told %q", command, site.all)
		}
		inside := h.InsideShell("box", `cat "$HOME/key"`).Stdout
		if inside == key || !strings.HasPrefix(inside, "sk-ant-api03-") {
			t.Errorf("%q: the client had the key %q", command, inside)
		}
		site.forget()
	}
	wantUnseen(t, h, "box", key)
}
