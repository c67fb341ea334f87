package guest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

func TestServiceLife(t *testing.T) {
	b := newBox(t)
	b.configure([]service.Spec{sh("web", `echo "hello $LITTERBOX_SERVICE $PORT_WEB $A in $PWD"; echo oops >&2; exec sleep 6001`,
		func(s *service.Spec) { s.Env = map[string]string{"A": "b"} })})
	if got := b.status("web"); got.State != service.Stopped || got.Wanted {
		t.Errorf("before the start: %+v", got)
	}
	got := b.wish(service.WishStart, "web")[0]
	if got.State != service.Running || !got.Wanted || got.PID < 2 || got.StartedAt.IsZero() {
		t.Errorf("after the start: %+v", got)
	}
	eventually(t, "its output is in the journal", func() bool { return strings.Contains(b.logs("web"), "oops") })
	want := fmt.Sprintf("* started (pid %d)\nhello web 4321 b in %s\noops\n", got.PID, b.workspace)
	if diff := cmp.Diff(want, b.logs("web")); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	// Starting it again changes nothing; a service is not a background process.
	if again := b.wish(service.WishStart)[0]; again.PID != got.PID {
		t.Errorf("started twice: %d, then %d", got.PID, again.PID)
	}
	s := b.open()
	if list, err := wire.Processes(limit(t), s); err != nil || len(list) != 0 {
		t.Errorf("background processes: %+v, %v", list, err)
	}
	restarted := b.wish(service.WishRestart, "web")[0]
	if restarted.State != service.Running || restarted.PID == got.PID {
		t.Errorf("after the restart: %+v", restarted)
	}
	stopped := b.wish(service.WishStop, "web")[0]
	if stopped.State != service.Stopped || stopped.Wanted || stopped.PID != 0 || stopped.Last == nil || stopped.Last.Signal != "TERM" {
		t.Errorf("after the stop: %+v", stopped)
	}
	if n := b.processes("sleep 6001"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestServiceErrors(t *testing.T) {
	b := newBox(t)
	b.configure([]service.Spec{sh("web", "exec sleep 60"), {Name: "none", Command: []string{"no-such-program"}}})
	s := b.open()
	if _, err := wire.Services(limit(t), s, wire.ServiceOrder{Action: service.WishStart, Names: []string{"db"}}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an unknown service: %v", err)
	}
	s = b.open()
	if _, err := wire.Services(limit(t), s, wire.ServiceOrder{Action: "explode"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an unknown action: %v", err)
	}
	got := b.wish(service.WishStart, "none")[0]
	if got.State != service.Backoff || !strings.Contains(got.Problem, "command not found") || got.NextStart.IsZero() {
		t.Errorf("a missing program: %+v", got)
	}
	if got := b.wish(service.WishStop, "none")[0]; got.State != service.Stopped {
		t.Errorf("stopped: %+v", got)
	}
}

// Dependencies start before, and end after, the services that need them.
func TestServiceOrder(t *testing.T) {
	b := newBox(t)
	script := func(name string) string {
		return fmt.Sprintf(`echo %[1]s up >>order; trap 'echo %[1]s down >>order; exit' TERM; touch up-%[1]s; while :; do sleep 0.05; done`, name)
	}
	ready := func(s *service.Spec) { s.Ready = service.Ready{File: "up-" + s.Name} }
	specs := []service.Spec{
		sh("web", script("web"), needs("api"), ready), sh("api", script("api"), needs("db"), ready), sh("db", script("db"), ready),
	}
	b.configure(specs)
	if got := states(b.wish(service.WishStart)); got != "db=running api=running web=running" {
		t.Fatal(got)
	}
	s := b.open()
	if err := wire.Shutdown(limit(t), s, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	_ = b.process.Wait()
	b.start(stage{})
	if got, want := b.sh("cat order"), "db up\napi up\nweb up\nweb down\napi down\ndb down"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// A service that needs an unwanted one waits, and says so.
	b.configure(specs)
	if got := states(b.wish(service.WishStart, "web")); got != "web=waiting" {
		t.Error(got)
	}
	if got := states(b.wish(service.WishStart, "db", "api")); got != "db=running api=running" {
		t.Error(got)
	}
	eventually(t, "web runs once its needs do", func() bool { return b.status("web").State == service.Running })
}

func TestServiceReady(t *testing.T) {
	b := newBox(t)
	const listen = `import socket,time
s=socket.socket(); time.sleep(0.2); s.bind(("127.0.0.1",%d)); s.listen(); print("listening",flush=True); time.sleep(600)`
	specs := []service.Spec{
		{Name: "port", Command: []string{"python3", "-c", fmt.Sprintf(listen, 4000)}, Ready: service.Ready{Port: 4000}},
		{Name: "named", Command: []string{"python3", "-c", fmt.Sprintf(listen, 4321)}, Ready: service.Ready{Named: "web"}},
		sh("file", "sleep 0.2; echo x >ready; exec sleep 600", func(s *service.Spec) { s.Ready = service.Ready{File: "ready"} }),
		sh("command", "sleep 0.2; echo x >works; exec sleep 600", func(s *service.Spec) {
			s.Ready = service.Ready{Command: []string{"sh", "-c", "test -e works"}}
		}),
		sh("never", "exec sleep 600", func(s *service.Spec) { s.Ready = service.Ready{Port: 4001, Timeout: 300 * time.Millisecond} }),
	}
	// A file of an earlier life does not count.
	b.sh("touch -d yesterday ready")
	b.configure(specs)
	got := b.wish(service.WishStart)
	if states(got) != "command=running file=running named=running never=backoff port=running" {
		t.Error(states(got))
	}
	// As it was then: by now it may be trying again.
	never := got[slices.IndexFunc(got, func(s service.Status) bool { return s.Name == "never" })]
	if !strings.Contains(never.Problem, "not ready within 300ms") {
		t.Errorf("never: %+v", never)
	}
	// A line printed just as it listens may come after the note of the probe.
	eventually(t, "the journal of port holds both", func() bool {
		out := b.logs("port")
		return strings.Contains(out, "listening\n") && strings.Contains(out, "* ready\n")
	})
	if b.sh("cat ready") != "x" {
		t.Error("ready before its file was new")
	}
}

// A restart signal goes to the service's own process, which stays.
func TestServiceRestartSignal(t *testing.T) {
	b := newBox(t)
	b.configure([]service.Spec{sh("web", `trap 'echo again' HUP; trap 'echo bye; exit 0' USR1; sleep 600 & echo up; while :; do wait; done`,
		func(s *service.Spec) { s.Signals = service.Signals{Stop: "USR1", Restart: "HUP"} })})
	first := b.wish(service.WishStart, "web")[0]
	eventually(t, "it is up", func() bool { return strings.Contains(b.logs("web"), "up\n") })
	second := b.wish(service.WishRestart, "web")[0]
	if first.PID != second.PID || second.State != service.Running {
		t.Errorf("%+v, then %+v", first, second)
	}
	eventually(t, "it obeys HUP", func() bool { return strings.Contains(b.logs("web"), "again\n") })
	b.wish(service.WishStop, "web")
	if out := b.logs("web"); !strings.Contains(out, "bye\n* ended with exit code 0\n") {
		t.Errorf("the stop signal: %q", out)
	}
	if n := b.processes("sleep 600"); n != 0 {
		t.Errorf("%d children outlive it", n)
	}
}

func TestServiceRestartPolicies(t *testing.T) {
	b := newBox(t)
	b.configure([]service.Spec{
		sh("once", "exit 0", policy(service.Never)), sh("broken", "exit 3", policy(service.Never)),
		sh("fine", "exit 0", policy(service.OnFailure)), sh("flaky", "echo x >>tries; test $(wc -l <tries) -ge 3", policy(service.OnFailure)),
		sh("loop", "echo x >>loops; exit 1"),
	})
	b.wish(service.WishStart)
	for name, code := range map[string]int{"once": 0, "broken": 3, "fine": 0, "flaky": 0} {
		eventually(t, name+" comes to rest", func() bool { return b.status(name).State == service.Exited })
		if got := b.status(name); got.Last == nil || got.Last.Code != code || !got.Wanted {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := b.status("flaky"); got.Restarts != 2 || b.sh("wc -l <tries") != "3" {
		t.Errorf("flaky: %+v", got)
	}
	// A crash loop rests longer each time.
	eventually(t, "loop has crashed three times", func() bool { return b.status("loop").Restarts >= 3 })
	if out := b.logs("loop"); !strings.Contains(out, "starts again in 250ms") || !strings.Contains(out, "starts again in 500ms") {
		t.Errorf("loop: %q", out)
	}
	b.wish(service.WishStop, "loop")
	if got := b.status("loop"); got.State != service.Stopped || got.Problem != "" {
		t.Errorf("loop after the stop: %+v", got)
	}
}

// No matter what a service does with its processes, stop ends all of them.
func TestServiceMisbehaves(t *testing.T) {
	b := newBox(t)
	const detach = `import os,sys,time,signal
signal.signal(signal.SIGTERM, signal.SIG_IGN) if "deaf" in sys.argv else None
if os.fork(): time.sleep(6002); os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.execvp("sleep", ["sleep", "6003"])`
	const clears = `import os,time
if os.fork(): time.sleep(6002); os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
if os.fork(): os._exit(0)
path = os.environ["PATH"]
os.environ.clear()
os.execvpe("sh", ["sh", "-c", "sleep 6000; true"], {"PATH": path})`
	specs := []service.Spec{
		{Name: "detaches", Command: []string{"python3", "-c", detach}, Grace: 20 * time.Second},
		{Name: "clears", Command: []string{"python3", "-c", clears}, Grace: 20 * time.Second},
		sh("deaf", `trap '' TERM INT HUP; sleep 6004 & while :; do sleep 0.1; done`, grace(300*time.Millisecond)),
		sh("sleeper", `kill -STOP $$; exec sleep 6005`, grace(20*time.Second)),
		sh("groups", `set -m; sleep 6006 & sleep 6007 & wait`, grace(20*time.Second)),
		sh("zombies", `for i in 1 2 3 4 5; do (sh -c 'exit 1' &) ; done; exec sleep 6008`),
	}
	b.configure(specs)
	b.wish(service.WishStart)
	for _, n := range []string{"6000", "6003", "6004", "6006", "6007", "6008"} {
		eventually(t, "sleep "+n+" runs", func() bool { return b.processes("sleep "+n) == 1 })
	}
	eventually(t, "no orphan stays a zombie", func() bool { return !strings.Contains(b.sh("cat /proc/[0-9]*/stat 2>/dev/null || true"), ") Z 1 ") })
	// A process that has left the service's session is still the service's, and
	// not a background process of a command.
	exit, _ := b.run(wire.Exec{Argv: argv("true")}, nil)
	if len(exit.Background) != 0 {
		t.Errorf("a command left %+v", exit.Background)
	}
	if got := states(b.wish(service.WishStop)); got != "clears=stopped deaf=stopped detaches=stopped groups=stopped sleeper=stopped zombies=stopped" {
		t.Error(got)
	}
	if n := b.processes("sleep 600"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if out := b.logs("deaf"); !strings.Contains(out, "was killed") {
		t.Errorf("deaf: %q", out)
	}
}

// A service that goes into the background is distinguished from one that works.
func TestServiceDaemonizes(t *testing.T) {
	b := newBox(t)
	b.configure([]service.Spec{sh("daemon", `setsid sleep 6009 & exit 0`)})
	b.wish(service.WishStart)
	eventually(t, "it is found out", func() bool { return strings.Contains(b.status("daemon").Problem, "stay in the foreground") })
	eventually(t, "at most one of them runs", func() bool { return b.processes("sleep 6009") <= 1 })
	b.wish(service.WishStop)
	if n := b.processes("sleep 6009"); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// A flood fills neither disk nor memory, and its end can be read.
func TestServiceFlood(t *testing.T) {
	b := newBox(t)
	b.configure([]service.Spec{sh("flood", `yes "$(printf '%01000d' 0)" | head -n 40000; echo last; exec sleep 600`)})
	b.wish(service.WishStart)
	eventually(t, "the last line is there", func() bool {
		s := b.open()
		defer s.Close()
		last := ""
		_, err := wire.Logs(limit(t), s, wire.LogQuery{Service: "flood", From: -1, Tail: 1}, func(line wire.LogLine) error { last = line.Text; return nil })
		return err == nil && last == "last"
	})
	kept := b.sh("du -sk $HOME/.local/state/litterbox/services | cut -f1")
	var kib int
	if _, err := fmt.Sscan(kept, &kib); err != nil || kib > 9<<10 {
		t.Errorf("it keeps %s KiB", kept)
	}
}

func TestServiceLogsPageAndFollow(t *testing.T) {
	b := newBox(t)
	b.configure([]service.Spec{sh("web", `for i in 1 2 3 4 5; do echo line $i; done; while [ ! -e go ]; do sleep 0.02; done; echo line 6; exec sleep 600`)})
	b.wish(service.WishStart)
	eventually(t, "five lines are there", func() bool { return strings.Contains(b.logs("web"), "line 5") })
	read := func(query wire.LogQuery) (lines []string, end wire.LogEnd) {
		t.Helper()
		s := b.open()
		defer s.Close()
		query.Service = "web"
		end, err := wire.Logs(limit(t), s, query, func(line wire.LogLine) error { lines = append(lines, line.Text); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return lines, end
	}
	all, _ := read(wire.LogQuery{})
	var paged []string
	for next := int64(0); ; {
		page, end := read(wire.LogQuery{From: next, Limit: 2})
		paged = append(paged, page...)
		if next = end.Next; !end.More {
			break
		}
		if len(page) != 2 {
			t.Fatalf("a page of %d lines", len(page))
		}
	}
	if diff := cmp.Diff(all, paged); diff != "" {
		t.Errorf("pages (-all +paged):\n%s", diff)
	}
	s := b.open()
	enough := errors.New("enough")
	var followed []string
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	_, err := wire.Logs(ctx, s, wire.LogQuery{Service: "web", From: -1, Tail: 2, Follow: true}, func(line wire.LogLine) error {
		followed = append(followed, line.Text)
		if line.Text == "line 5" {
			b.sh("touch go")
		}
		if line.Text == "line 6" {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"line 4", "line 5", "line 6"}, followed); diff != "" {
		t.Errorf("followed (-want +got):\n%s", diff)
	}
}

// The configuration counts: wanted services run, others stop, unchanged ones go
// on, removed ones are forgotten.
func TestServiceReconfigure(t *testing.T) {
	b := newBox(t)
	specs := []service.Spec{sh("a", "exec sleep 6010"), sh("b", "exec sleep 6011"), sh("c", "exec sleep 6012")}
	b.configure(specs, "a", "b")
	eventually(t, "a and b run", func() bool {
		return b.status("a").State == service.Running && b.status("b").State == service.Running
	})
	first := b.status("a").PID
	b.configure(specs[:2], "a")
	eventually(t, "b stops", func() bool { return b.status("b").State == service.Stopped })
	if got := b.status("a"); got.PID != first {
		t.Errorf("a was started again: %+v", got)
	}
	b.configure(specs[1:], "c")
	eventually(t, "c runs", func() bool { return b.status("c").State == service.Running })
	eventually(t, "a is forgotten", func() bool {
		return states(b.wish(service.WishStatus)) == "b=stopped c=running" && b.processes("sleep 6010") == 0
	})
	s := b.open()
	err := wire.Set(limit(t), s, wire.Configure{Services: []service.Spec{sh("x", "true", needs("y"))}})
	if fault.KindOf(err) != fault.Invalid {
		t.Errorf("an impossible need: %v", err)
	}
}
