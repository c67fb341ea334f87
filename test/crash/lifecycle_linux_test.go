package crash_test

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
	"github.com/litterbox-sandbox/litterbox/test/tracer"
)

// operation is something done to a running sandbox. Its keeper and its guest
// run before it begins, so the tracer does not follow them: they are killed
// from outside at the steps that the client makes.
type operation struct {
	alone  bool // no keeper and no guest take part in it
	before func(h *program.Host, n int)
	args   func(n int) []string
	after  func(h *program.Host, n int)
}

// round is one operation with one kill.
type round struct {
	victim string // one of victims()
	step   int
	delay  time.Duration // between the step and the kill, in which the client goes on
}

// rounds returns every step for every victim, also a little later, with
// LITTERBOX_TEST_CRASH=all, and a few of them, the same in every run, with any
// other value. Without a value these tests are skipped.
func rounds() []round {
	if os.Getenv("LITTERBOX_TEST_CRASH") != "all" {
		var few []round
		for _, step := range []int{2, 4} {
			for _, victim := range victims() {
				few = append(few, round{victim, step, 0})
			}
		}
		return few
	}
	var all []round
	for _, delay := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond} {
		for _, victim := range victims() {
			if victim == "client" && delay > 0 {
				continue
			}
			for step := 1; step <= most; step++ {
				all = append(all, round{victim, step, delay})
			}
		}
	}
	return all
}

// everyRound carries the operation out once for each round.
func everyRound(t *testing.T, config string, o operation) {
	if os.Getenv("LITTERBOX_TEST_CRASH") == "" {
		t.Skip("only by make crash, or with LITTERBOX_TEST_CRASH=some")
	}
	t.Parallel()
	h := built.Anywhere(t)
	if config != "" {
		h.Put(filepath.Join(h.Repo, ".litterbox.toml"), config)
		h.Must("trust")
	}
	h.Must("create", "box")
	done := map[string]bool{} // victims without further steps
	struck := 0
	for n, r := range rounds() {
		kind := fmt.Sprint(r.victim, r.delay)
		if done[kind] || o.alone && r.victim != "client" {
			continue
		}
		h.Must("exec", "box", "--", "sh", "-c", fmt.Sprintf("echo %d >file", n))
		o.before(h, n)
		victim := 0
		if keeper, _ := h.MustProcesses("box"); r.victim == "outpost" {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", keeper)); err != nil {
				continue // what is stopped has none
			}
		}
		if r.victim != "client" {
			victim = process(h, "box", r.victim)
		}
		began := time.Now()
		who, output := killedAt(h, tracer.Target{Step: r.step, Kill: victim, Delay: r.delay, Asks: !o.alone}, "", o.args(n)...)
		if who == "" {
			done[kind] = true
		} else {
			struck++
		}
		o.after(h, n)
		h.Must("exec", "box", "--", "true")
		holds(h, "box", "file", fmt.Sprintln(n))
		t.Logf("%s at step %d, %v later: %.1fs; %s", r.victim, r.step, r.delay, time.Since(began).Seconds(), strings.TrimSpace(output))
		if t.Failed() {
			t.Fatalf("after the kill of the %s at step %d (%v later) of litterbox %q", r.victim, r.step, r.delay, o.args(n))
		}
	}
	t.Logf("%d were killed", struck)
	if struck < 4 && !o.alone || struck == 0 {
		t.Errorf("the operation makes fewer steps than thought: only %d were killed", struck)
	}
	h.Git("fsck", "--connectivity-only", "--no-dangling")
	h.Must("delete", "--force", "box")
	leavesNothing(h)
}

// runs makes the sandbox run, in whatever state the kill left it.
func runs(h *program.Host) {
	h.Helper()
	if strings.Contains(h.Must("list"), "paused") {
		h.Must("resume", "box")
	}
	h.Must("exec", "box", "--", "true")
	if listed := h.Must("list"); !strings.Contains(listed, "running") {
		h.Errorf("it does not run:\n%s", listed)
	}
}

func TestPause(t *testing.T) {
	everyRound(t, "", operation{
		before: func(h *program.Host, _ int) { runs(h) },
		args:   func(int) []string { return []string{"pause", "box"} },
		after: func(h *program.Host, _ int) {
			// Paused, running or dead: the next commands agree on which.
			if got := h.Litterbox("pause", "box"); got.Code != 0 && !strings.Contains(got.Stderr, "litterbox start box") {
				h.Errorf("pause: %+v", got)
			}
			runs(h)
		},
	})
}

func TestResume(t *testing.T) {
	everyRound(t, "", operation{
		before: func(h *program.Host, _ int) { runs(h); h.Must("pause", "box") },
		args:   func(int) []string { return []string{"resume", "box"} },
		after:  func(h *program.Host, _ int) { runs(h) },
	})
}

func TestRename(t *testing.T) {
	everyRound(t, "", operation{
		alone:  true,
		before: func(h *program.Host, _ int) { runs(h); h.Must("stop", "box") },
		args:   func(int) []string { return []string{"rename", "box", "other"} },
		after: func(h *program.Host, _ int) {
			// One of the names counts, and the first use of either finishes the rest.
			old, other := h.Litterbox("status", "box"), h.Litterbox("status", "other")
			if (old.Code == 0) == (other.Code == 0) {
				h.Errorf("both names count, or neither:\n%+v\n%+v", old, other)
			}
			if other.Code == 0 {
				h.Must("rename", "other", "box")
			}
			if got := strings.Fields(h.Git("branch", "--list", "box", "other", "--format=%(refname:short)")); len(got) != 1 || got[0] != "box" {
				h.Errorf("branches: %q", got)
			}
		},
	})
}

func TestLimits(t *testing.T) {
	value := func(n int) string { return fmt.Sprintf("%dMiB", 600+n%100) }
	everyRound(t, "", operation{
		before: func(h *program.Host, n int) { h.Must("limits", "box", "memory="+value(n)) },
		args:   func(n int) []string { return []string{"limits", "box", "memory=" + value(n+50)} },
		after: func(h *program.Host, n int) {
			got := h.Must("limits", "box")
			if !strings.Contains(got, value(n)) && !strings.Contains(got, value(n+50)) {
				h.Errorf("neither the old limit nor the new one:\n%s", got)
			}
			h.Must("limits", "box", "memory="+value(n+50))
		},
	})
}

const served = `
[container]
ports = ["web"]

[container.services.web]
command = ["python3", "-c", """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'it works')
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT_WEB'])), Answer).serve_forever()
"""]
ready = {port = "web"}
`

// serves fails unless the service runs once and is reached through its port.
func serves(h *program.Host) {
	h.Helper()
	h.Must("exec", "box", "--", "true")
	h.Must("service", "box", "start")
	var ports []struct {
		Host int `json:"host"`
	}
	if err := json.Unmarshal([]byte(h.Must("ports", "box", "--json")), &ports); err != nil || len(ports) != 1 {
		h.Fatalf("ports: %+v, %v", ports, err)
	}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Host))
	if err != nil {
		h.Errorf("port %d: %v", ports[0].Host, err)
		return
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "it works" {
		h.Errorf("port %d: %q, %v", ports[0].Host, body, err)
	}
	if count := h.Must("exec", "box", "--no-commit", "--", "sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null | grep -c python3"); strings.TrimSpace(count) != "1" {
		h.Errorf("the service runs %s times", count)
	}
}

func TestServiceAndPorts(t *testing.T) {
	program.Need(t, "python3")
	for _, verb := range []string{"start", "stop", "restart"} {
		t.Run(verb, func(t *testing.T) {
			everyRound(t, served, operation{
				before: func(h *program.Host, _ int) {
					h.Must("service", "box", "start")
					if verb == "start" {
						h.Must("service", "box", "stop")
					}
				},
				args:  func(int) []string { return []string{"service", "box", verb, "web"} },
				after: func(h *program.Host, _ int) { serves(h) },
			})
		})
	}
	t.Run("ports", func(t *testing.T) {
		everyRound(t, served, operation{
			before: func(h *program.Host, _ int) { h.Must("stop", "box") },
			args:   func(int) []string { return []string{"start", "box"} },
			after:  func(h *program.Host, _ int) { serves(h) },
		})
	})
}

func TestAllowInAPause(t *testing.T) {
	// The same few rules again and again, or each round would have more steps
	// than the one before, and there would be no last one. An existing rule
	// makes a revision, too.
	rule := func(kind string, n int) string { return fmt.Sprintf("%s%d.example.com", kind, n%4) }
	revision := func(h *program.Host) (found int) {
		h.Helper()
		got := h.Must("network", "box")
		if _, err := fmt.Sscanf(got, "revision %d", &found); err != nil {
			h.Errorf("no revision: %v in\n%s", err, got)
		}
		return found
	}
	everyRound(t, "", operation{
		before: func(h *program.Host, _ int) { runs(h) },
		args:   func(n int) []string { return []string{"allow", "box", rule("host", n), "--pause"} },
		after: func(h *program.Host, n int) {
			runs(h)
			// The recorded rules are in force, and the next change follows.
			was := revision(h)
			h.Must("allow", "box", rule("next", n))
			if now := revision(h); now != was+1 {
				h.Errorf("revision %d follows %d", now, was)
			}
			if got := h.Must("network", "box"); !strings.Contains(got, rule("next", n)) {
				h.Errorf("%s", got)
			}
		},
	})
}

func TestPrune(t *testing.T) {
	name := func(n int) string { return fmt.Sprintf("old%d", n) }
	everyRound(t, "", operation{
		alone: true,
		before: func(h *program.Host, n int) {
			h.Configure("[retention]\nmax-age = \"1ms\"\nstates = [\"stopped\"]\n")
			h.Must("create", name(n))
			h.Must("exec", name(n), "--", "sh", "-c", fmt.Sprintf("echo %d >work", n))
			h.Must("stop", name(n))
		},
		args: func(int) []string { return []string{"prune", "--yes", "--force"} },
		after: func(h *program.Host, n int) {
			h.Must("prune", "--yes", "--force") // the rest of it, if there is one
			refs := h.Git("for-each-ref", "--format=%(refname)", "refs/heads/"+name(n), "refs/litterbox/trash/"+name(n)+"-*")
			if refs == "" {
				h.Errorf("the work of %s is on no ref", name(n))
				return
			}
			holds(h, strings.Fields(refs)[0], "work", fmt.Sprintln(n))
			h.Litterbox("delete", "--force", name(n))
		},
	})
}
