package clients_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keptAccount is an account of OpenCode whose one token does not end, or is not
// renewed without a browser.
type keptAccount struct {
	host, model string
	document    func(token string) string
}

func keptAccounts() []keptAccount {
	return []keptAccount{
		{"api.githubcopilot.com", "github-copilot/gpt-5-mini", func(token string) string {
			return fmt.Sprintf(`{"github-copilot":{"type":"oauth","access":%q,"refresh":%q,"expires":0}}`, token, token)
		}},
		{"api.poe.com", "poe/anthropic/claude-haiku-4.5", func(token string) string {
			return fmt.Sprintf(`{"poe":{"type":"oauth","access":%q,"refresh":%q,"expires":9007199254740991}}`, token, token)
		}},
	}
}

// It works inside, where there is only a placeholder.
func (k keptAccount) works(t *testing.T, dir string) {
	bin := filepath.Join(dir, "node_modules/opencode-linux-x64-baseline/bin")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("the client is not installed: %v", err)
	}
	site := &subscription{issuer: &issuer{}}
	site.issuer.renew()
	token := site.access[0]
	webSite(t, outside.Host(k.host), site)
	h := newHost(t)
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), fmt.Sprintf("[mounts]\nread-only = [%q]\n[cost]\nmeter = true\n", dir))
	h.Put(filepath.Join(h.Home, ".local/share/opencode/auth.json"), k.document(token))
	h = h.With("SSL_CERT_FILE="+outside.CA, "PATH="+bin+":"+os.Getenv("PATH"))
	h.Must("create", "box")
	got := h.Litterbox("agent", "run", "opencode", "Say done", "--in", "box", "--model", k.model, "-e", "OPENCODE_DISABLE_MODELS_FETCH=1")
	if got.Code != 0 || !strings.Contains(got.Stdout, "done") || strings.Contains(got.Stderr, "the network refused") {
		t.Fatalf("it does not work inside: exit code %d\n%s\n%s\nsent: %q\nnot known: %q\n%s", got.Code, got.Stdout, got.Stderr, site.look().sent, site.other, h.Litterbox("network", "box").Stdout)
	}
	if cost := h.Must("cost", "box", "--by", "model"); !strings.Contains(cost, "\nm ") { // as the stand-in calls its model
		t.Errorf("nothing was counted:\n%s", cost)
	}
	wantUnseen(t, h, "box", token)
}
