package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// A sandbox is told of the caller, and lent the caller's directories, whichever
// process works for it.
func TestSandboxSeesItsCaller(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	tools := filepath.Join(home, "go/bin")
	if err := os.MkdirAll(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	records, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Store: records})
	p := e.place(&sandbox.Sandbox{ID: "fix-01234567", Name: "fix", Repository: "/somewhere/project"}, nil, nil)
	ctx := caller.For(t.Context(), caller.Caller{
		Env:  []string{"PATH=/usr/bin:" + tools, "SHELL=/bin/zsh", "TERM=other", "API_TOKEN=of-the-caller-alone", "HOME=/ignored"},
		Home: home, User: "ann",
	})
	who := callerOf(ctx)
	spec := driver.Spec{Home: homeInside(who, p.record.Repository), User: innerUser(who, driver.Ownership{UID: 7, GID: 8})}
	e.addSurroundings(p, who, &spec, nil)
	search := "/usr/bin:" + tools + ":" + home + "/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"
	want := map[string]string{
		"HOME": home, "USER": "ann", "LOGNAME": "ann", "SHELL": "/bin/zsh", "PATH": search, "LITTERBOX": "fix",
		"npm_config_update_notifier": "false",
	}
	if diff := cmp.Diff(want, spec.Env); diff != "" {
		t.Errorf("environment (- want, + got):\n%s", diff)
	}
	if diff := cmp.Diff([]driver.Mount{{Source: tools, Target: tools}}, spec.Mounts); diff != "" {
		t.Errorf("mounts (- want, + got):\n%s", diff)
	}
	if got := clientEnv(who.Env, false); !slices.Equal(got, []string{"TERM=other"}) {
		t.Errorf("a command gets %q", got)
	}
	if !slices.Contains(who.Secrets(), "of-the-caller-alone") {
		t.Error("the caller's secrets are not redacted")
	}
	_, call, err := e.record(ctx, "prune", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if call.entry.Who.User != "ann" {
		t.Errorf("the audit log names %q", call.entry.Who.User)
	}
	if err := call.end("", nil, nil); err != nil {
		t.Error(err)
	}
}
