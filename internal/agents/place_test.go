package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func owner(t *testing.T, path string) (uid, gid uint32) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner")
	}
	return stat.Uid, stat.Gid
}

func TestLinksAndOwners(t *testing.T) {
	m := newMachine(t)
	link := func(target, name string) {
		t.Helper()
		path := filepath.Join(m.dir, name)
		if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
	}
	// Out of the repository, also by a directory, and into .git.
	m.put("outside/mcp.json", "{}")
	for _, target := range []string{filepath.Join(m.dir, "outside/mcp.json"), "../outside/mcp.json", "../outside/new.json", ".git/config.json"} {
		link(target, "repo/.mcp.json")
		m.fails(fault.Denied, ".mcp.json", agents.Request{}, "claude")
	}
	link("../outside", "repo/.cursor")
	m.fails(fault.Denied, ".cursor/mcp.json", agents.Request{}, "cursor")
	link("nowhere", "repo/.cursor")
	m.fails(fault.Denied, ".cursor/mcp.json", agents.Request{}, "cursor")
	if got := m.get("outside/mcp.json"); got != "{}" {
		t.Errorf("%q", got)
	}
	// Within the repository, and anywhere for the user's own: the link stays, its
	// target changes.
	m.put("repo/shared/mcp.json", "{}")
	link("shared/mcp.json", "repo/.mcp.json")
	m.put("dotfiles/claude.json", "{}\n")
	link(filepath.Join(m.dir, "dotfiles/claude.json"), "home/.claude.json")
	before := m.files()
	m.install(agents.Request{}, "claude")
	m.install(agents.Request{Scope: agents.User}, "claude")
	for _, name := range []string{"repo/shared/mcp.json", "dotfiles/claude.json"} {
		if got := m.get(name); !strings.Contains(got, "litterbox") {
			t.Errorf("%s: %q", name, got)
		}
	}
	m.uninstall(agents.Request{}, "claude")
	m.uninstall(agents.Request{}, "claude") // now the user's
	m.same(before)
	if got := m.get("dotfiles/claude.json"); got != "{}\n" {
		t.Errorf("%q", got)
	}

	link("/dev/zero", "home/.cursor/mcp.json")
	m.fails(fault.Denied, "not a regular file", agents.Request{Scope: agents.User}, "cursor")
	if err := os.MkdirAll(filepath.Join(m.repo, ".vscode/mcp.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.fails(fault.Denied, "not a regular file", agents.Request{}, "vscode")
	if os.Geteuid() != 0 {
		link("/etc/hostname", "home/.claude.json")
		m.fails(fault.Denied, "belongs to user 0", agents.Request{Scope: agents.User}, "claude")
		if err := os.Chmod(m.repo, 0o555); err != nil {
			t.Fatal(err)
		}
		m.fails(fault.Denied, "cannot write opencode.json", agents.Request{}, "opencode")
		if err := os.Chmod(m.repo, 0o755); err != nil {
			t.Fatal(err)
		}
		return
	}
	// Root leaves existing and new files to the owner of the directory.
	if err := errors.Join(os.Chown(m.repo, 1234, 1235), os.Remove(filepath.Join(m.repo, ".mcp.json"))); err != nil {
		t.Fatal(err)
	}
	m.install(agents.Request{Exclusive: true}, "claude")
	for _, name := range []string{".mcp.json", ".claude", ".claude/settings.json"} {
		if uid, gid := owner(t, filepath.Join(m.repo, name)); uid != 1234 || gid != 1235 {
			t.Errorf("%s belongs to %d:%d", name, uid, gid)
		}
	}
}
