package mcp_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// A server over HTTP serves clients other than the user who started it: its
// environment is its own. Over stdio the client starts the server with its
// environment, which is then the caller's.
func TestServerLendsNoEnvironment(t *testing.T) {
	t.Parallel()
	// Variables that a command may get from its caller's environment (TERM,
	// LC_*), and variables that name the author of commits.
	secret := []string{"LC_SERVER=of-the-server", "GIT_AUTHOR_NAME=of-the-server", "GIT_AUTHOR_EMAIL=of-the-server", "VENDOR_API_KEY=key-of-the-server"}
	lent := func(t *testing.T, h *program.Host, c *client) string {
		c.must("sandbox-create", args{"name": "fix"})
		seen := "inside:\n" + c.do("env; cat ~/.gitconfig; echo x > made") + "\n"
		keeper, _ := h.MustProcesses("fix")
		env, err := os.ReadFile("/proc/" + strconv.Itoa(keeper) + "/environ")
		if err != nil {
			t.Fatal(err)
		}
		return seen + "keeper:\n" + string(env) + "\nauthor: " + h.Git("log", "-1", "--format=%an", "fix")
	}
	t.Run("stdio", func(t *testing.T) {
		h := built.New(t)
		h = h.With(secret...)
		got := lent(t, h, connect(t, h, newest))
		// The control: the caller's variables count, and show here.
		if !strings.Contains(got, "LC_SERVER=of-the-server") || !strings.Contains(got, "author: of-the-server") {
			t.Errorf("the caller's environment does not count: %s", got)
		}
		if strings.Contains(got, "key-of-the-server") {
			t.Errorf("a key is in the sandbox or outlives its client: %s", got)
		}
	})
	t.Run("http", func(t *testing.T) {
		for _, revision := range []string{newest, sessions} {
			t.Run(revision, func(t *testing.T) {
				h := built.New(t)
				server := h.With(secret...)
				_, url, token := web(t, server)
				got := lent(t, h, dial(t, h, over(url, token), revision))
				if strings.Contains(got, "of-the-server") {
					t.Errorf("the server lends its environment: %s", got)
				}
				if !strings.Contains(got, "author: Test User") {
					t.Errorf("the account's own settings do not count: %s", got)
				}
			})
		}
	})
}
