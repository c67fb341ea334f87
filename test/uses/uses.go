// Package uses does in a sandbox what people do: services, forwarded ports, copies,
// snapshots, forks, limits, pauses and ssh. The results are the same wherever the
// sandbox is, so the tests of each kind of machine call it.
package uses

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// patience bounds the wait for what is sure to come, even on a loaded machine.
const patience = 2 * time.Minute

// configuration needs nothing inside but busybox.
const configuration = `
[container]
ports = ["web"]

[container.services.web]
command = ["sh", "-c", "mkdir -p /tmp/www && echo served >/tmp/www/index.html && exec busybox httpd -f -p 127.0.0.1:$PORT_WEB -h /tmp/www"]
ready = { port = "web" }
`

// All makes a sandbox on h, uses it and deletes it.
func All(t *testing.T, h *program.Host) {
	begin(h)
	for _, use := range []struct {
		name string
		do   func(*testing.T, *program.Host)
	}{{"services and ports", services}, {"copies", copies}, {"snapshots", snapshots}, {"forks", forks}, {"limits", limits}, {"pauses", pauses}, {"doors", doors}} {
		t.Run(use.name, func(t *testing.T) {
			mine := *h
			mine.TB = t
			use.do(t, &mine)
		})
	}
	h.Must("delete", "--force", "used")
}

// Doors makes a sandbox on h and opens all of its doors.
func Doors(t *testing.T, h *program.Host) {
	begin(h)
	doors(t, h)
	h.Must("delete", "--force", "used")
}

func begin(h *program.Host) {
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), configuration)
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "a service")
	h.Must("create", "used")
}

// served asks the service, from this machine.
func served(t *testing.T, h *program.Host, sandbox string) {
	t.Helper()
	var ports []struct{ Host int }
	if err := json.Unmarshal([]byte(h.Must("ports", sandbox, "--json")), &ports); err != nil || len(ports) != 1 {
		t.Fatalf("ports: %v, %v", ports, err)
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Host))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "served\n" {
		t.Errorf("%s answers %q: %v", sandbox, text, err)
	}
}

func services(t *testing.T, h *program.Host) {
	h.Must("service", "used", "status")
	served(t, h, "used")
	h.Must("service", "used", "restart", "web")
	served(t, h, "used")
	h.Must("service", "used", "logs", "web")
	// With the sandbox it stops, and starts.
	h.Must("stop", "used")
	h.Must("start", "used")
	h.Must("service", "used", "start", "web")
	served(t, h, "used")
}

func copies(t *testing.T, h *program.Host) {
	from := filepath.Join(h.Dir, "from")
	large := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
	h.Put(filepath.Join(from, "large"), large)
	h.Put(filepath.Join(from, "sub/small"), "small\n")
	h.Must("cp", from, "used:copied")
	if got := h.Git("show", "used:copied/sub/small"); got != "small" {
		t.Errorf("committed is %q", got)
	}
	back := filepath.Join(h.Dir, "back")
	h.Must("cp", "used:copied", back)
	if got, err := os.ReadFile(filepath.Join(back, "large")); err != nil || string(got) != large {
		t.Errorf("%d bytes came back: %v", len(got), err)
	}
	if got := h.Must("read", "used", "copied/sub/small"); got != "small" {
		t.Errorf("read is %q", got)
	}
}

func snapshots(t *testing.T, h *program.Host) {
	inside(t, h, "used", "echo before >state && mkdir -p ~/kept && echo home >~/kept/file", "")
	h.Must("snapshot", "used", "early")
	inside(t, h, "used", "echo after >state && rm -r ~/kept", "")
	if listed := h.Must("snapshots", "used"); !strings.Contains(listed, "early") {
		t.Errorf("listed is\n%s", listed)
	}
	h.Must("restore", "used", "early")
	inside(t, h, "used", "cat state ~/kept/file", "before\nhome\n")
	if got := h.Git("show", "used:state"); got != "before" {
		t.Errorf("committed is %q", got)
	}
}

func forks(t *testing.T, h *program.Host) {
	inside(t, h, "used", "echo both >shared", "")
	h.Must("fork", "used", "second")
	inside(t, h, "second", "cat shared && echo mine >own", "both\n")
	inside(t, h, "used", "test ! -e own", "")
	h.Must("service", "second", "start", "web") // a command does not wait for services
	served(t, h, "second")
	h.Must("delete", "--force", "second")
}

func limits(t *testing.T, h *program.Host) {
	h.Must("limits", "used", "pids=64")
	h.Must("stop", "used") // open-files counts from a start
	h.Must("limits", "used", "open-files=512")
	h.Must("start", "used")
	said := h.Must("limits", "used")
	for _, one := range []string{"64", "512"} {
		if !strings.Contains(said, one) {
			t.Errorf("limits do not say %s:\n%s", one, said)
		}
	}
	inside(t, h, "used", "ulimit -n", "512\n")
	h.Must("stop", "used")
	h.Must("limits", "used", "pids=default", "open-files=default")
	h.Must("start", "used")
}

func pauses(t *testing.T, h *program.Host) {
	h.Must("pause", "used")
	if got := h.Must("list"); !strings.Contains(got, "paused") {
		t.Errorf("listed is\n%s", got)
	}
	h.Must("resume", "used")
	served(t, h, "used")
}

// inside runs a script that succeeds and prints want.
func inside(t *testing.T, h *program.Host, sandbox, script, want string) {
	t.Helper()
	if got := h.InsideShell(sandbox, script); got.Code != 0 || got.Stdout != want {
		t.Errorf("%s prints %q, want %q: %+v", script, got.Stdout, want, got)
	}
}
