package packagecache_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// The servers of an editor in the user's home serve in each sandbox. No other
// sandbox and no host sees changes that one makes to them.
func TestServersOfEditors(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	const server = ".vscode-server/cli/servers/Stable-1/server"
	h.Put(filepath.Join(h.Home, server), "the server\n")
	h.Put(filepath.Join(h.Home, ".vscode-server/data/login"), "a token\n")
	h.Must("create", "before")
	if got := h.Inside("before", "sh", "-c", "ls -A ~/.vscode-server"); got.Code == 0 {
		t.Errorf("a sandbox has servers without being told: %+v", got)
	}
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "editors.cache = [\"vscode\"]\n")
	for _, name := range []string{"one", "two"} {
		h.Must("create", name)
	}
	if got := h.Inside("one", "sh", "-c", "cat ~/"+server+"; ls -A ~/.vscode-server"); got.Stdout != "the server\ncli\n" {
		t.Errorf("inside: %+v", got)
	}
	if shown := h.Must("status", "one"); !strings.Contains(shown, "servers of an editor: vscode") {
		t.Errorf("status does not say so:\n%s", shown)
	}
	if got := h.Inside("one", "sh", "-c", "echo another > ~/"+server+"; cat ~/"+server); got.Stdout != "another\n" {
		t.Errorf("a layer of its own: %+v", got)
	}
	if got := h.Inside("two", "sh", "-c", "cat ~/"+server); got.Stdout != "the server\n" {
		t.Errorf("another sandbox: %+v", got)
	}
	if got := h.Shell("cat ~/" + server).Stdout; got != "the server\n" {
		t.Errorf("the host: %q", got)
	}
	// A repository cannot choose what runs in other sandboxes.
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "editors.cache = [\"zed\"]\n")
	if got := h.Litterbox("create", "three"); got.Code == 0 || !strings.Contains(got.Stderr, "editors.cache") {
		t.Errorf("a repository's: %+v", got)
	}
}
