package hosts_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Commands ask the host over the connection of a sandbox's keeper, and open one where
// there is none.
func TestCommandsBorrow(t *testing.T) {
	h := open(t)
	h.add()
	h.Must("create", "box", "--machine", "big")
	h.far.connections()
	for _, content := range []string{"one", "two"} {
		if got := h.InsideShell("box", "echo "+content+" >made"); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		if got := strings.TrimSpace(h.Git("show", "box:made")); got != content {
			t.Errorf("committed is %q", got)
		}
	}
	h.Must("diff", "box")
	h.Must("list")
	h.Must("status", "box")
	if made := h.far.connections(); made != 0 {
		t.Errorf("commands of a sandbox that runs made %d connections", made)
	}
	h.Must("create", "other", "--machine", "big")
	if made := h.far.connections(); made != 1 {
		t.Errorf("another sandbox made %d connections beside its keeper's", made-1)
	}
	h.Must("delete", "--force", "other")

	// Stale sockets, of a keeper that was killed and of one that ended in order.
	sockets, err := filepath.Glob(filepath.Join(h.State, "litterbox/sandboxes", "box-*", "relay.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("the keeper's sockets are %q: %v", sockets, err)
	}
	for name, end := range map[string]func(){
		"killed": func() {
			keeper, _ := h.MustProcesses("box")
			if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
		"stopped": func() { h.Must("stop", "box") },
	} {
		end()
		if _, err := os.Stat(sockets[0]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		began := time.Now()
		if got := h.InsideShell("box", "echo "+name+" >made"); got.Code != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if got := strings.TrimSpace(h.Git("show", "box:made")); got != name || time.Since(began) > time.Minute {
			t.Errorf("%s: committed is %q, after %v", name, got, time.Since(began))
		}
	}
}
