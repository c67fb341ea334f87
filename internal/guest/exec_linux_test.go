package guest_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

func TestExec(t *testing.T) {
	b := newBox(t, func(lower string) {
		write(t, filepath.Join(lower, "sub/plain.sh"), "echo plain $1\n", 0o755)
		write(t, filepath.Join(lower, "sub/data"), "x", 0o644)
		write(t, filepath.Join(lower, "sub/lost"), "#!/no/such/interpreter\n", 0o755)
	})
	sub := filepath.Join(b.workspace, "sub")
	for _, c := range []struct {
		name    string
		command wire.Exec
		stdin   string
		want    outcome
	}{
		{"streams and code", wire.Exec{Argv: argv("sh", "-c", "cat; echo err >&2; exit 7")}, "in", outcome{7, "", "in", "err\n"}},
		{"signal", wire.Exec{Argv: argv("sh", "-c", "kill -SEGV $$")}, "", outcome{139, "SEGV", "", ""}},
		{"default signal actions", wire.Exec{Argv: argv("sh", "-c", "kill -PIPE $$")}, "", outcome{141, "PIPE", "", ""}},
		{"workspace is the directory", wire.Exec{Argv: argv("pwd")}, "", outcome{0, "", b.workspace + "\n", ""}},
		{"relative directory", wire.Exec{Argv: argv("sh", "-c", "echo $PWD"), Dir: []byte("sub")}, "", outcome{0, "", sub + "\n", ""}},
		{"environment", wire.Exec{Argv: argv("sh", "-c", "echo $LANG $NEW $PWD"), Env: []string{"LANG=x", "NEW=a b"}}, "", outcome{0, "", "x a b " + b.workspace + "\n", ""}},
		{"no other descriptor", wire.Exec{Argv: argv("sh", "-c", "echo /proc/self/fd/*")}, "", outcome{0, "", "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n", ""}},
		{"relative command", wire.Exec{Argv: argv("./plain.sh", "arg"), Dir: []byte("sub")}, "", outcome{0, "", "plain arg\n", ""}},
		{"PATH of the request", wire.Exec{Argv: argv("plain.sh"), Env: []string{"PATH=/bin:" + sub}}, "", outcome{0, "", "plain\n", ""}},
		{"bytes", wire.Exec{Argv: argv("printf", "%s", "\xff\xfe -- \n")}, "", outcome{0, "", "\xff\xfe -- \n", ""}},
		{"not found", wire.Exec{Argv: argv("nosuch")}, "", outcome{127, "", "", "cannot run \"nosuch\": command not found\n"}},
		{"no such file", wire.Exec{Argv: argv("./nosuch")}, "", outcome{127, "", "", "cannot run \"./nosuch\": no such file or directory\n"}},
		{"no interpreter", wire.Exec{Argv: argv("sub/lost")}, "", outcome{127, "", "", "cannot run \"sub/lost\": its interpreter is missing\n"}},
		{"not executable", wire.Exec{Argv: argv("sub/data")}, "", outcome{126, "", "", "cannot run \"sub/data\": permission denied\n"}},
		{"not executable in PATH", wire.Exec{Argv: argv("data"), Env: []string{"PATH=" + sub}}, "", outcome{126, "", "", "cannot run \"data\": permission denied\n"}},
		{"directory", wire.Exec{Argv: argv("./sub")}, "", outcome{126, "", "", "cannot run \"./sub\": is a directory\n"}},
		{"empty name", wire.Exec{Argv: argv("")}, "", outcome{127, "", "", "cannot run \"\": command not found\n"}},
		{"on a terminal", wire.Exec{Argv: argv("nosuch"), Terminal: &wire.Terminal{}}, "", outcome{127, "", "", "cannot run \"nosuch\": command not found\r\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := b.run(c.command, strings.NewReader(c.stdin))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExecInvalid(t *testing.T) {
	b := newBox(t)
	for _, c := range []struct {
		command wire.Exec
		want    string
	}{
		{wire.Exec{}, "cannot run a command without a name"},
		{wire.Exec{Argv: argv("a\x00b")}, `cannot run "a\x00b": an argument holds a NUL byte`},
		{wire.Exec{Argv: argv("true"), Env: []string{"A=\x00"}}, `cannot run "true": the environment holds a NUL byte`},
		{wire.Exec{Argv: argv("true"), Dir: []byte("gone")}, fmt.Sprintf("cannot run in %q: no such file or directory", filepath.Join(b.workspace, "gone"))},
		{wire.Exec{Argv: argv("true"), Dir: []byte("/etc/passwd")}, `cannot run in "/etc/passwd": not a directory`},
	} {
		_, err := wire.Run(limit(t), b.open(), c.command, wire.Streams{})
		if fault.KindOf(err) != fault.Invalid || err.Error() != c.want {
			t.Errorf("%q: %v (%s), want %s", c.command.Argv, err, fault.KindOf(err), c.want)
		}
	}
}

// Two hundred at once: each gets its own exit code, none is lost, and none
// stays behind as a zombie.
func TestExecManyAtOnce(t *testing.T) {
	b := newBox(t)
	var running sync.WaitGroup
	got, want := make([]outcome, 200), make([]outcome, 200)
	for i := range got {
		want[i] = outcome{Code: i, Out: strconv.Itoa(i) + "\n"}
		running.Go(func() {
			_, got[i] = b.run(wire.Exec{Argv: argv("sh", "-c", fmt.Sprintf("(true &); echo %d; exit %d", i, i))}, nil)
		})
	}
	running.Wait()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	noZombies(t, b)
}

func TestOrphansAreReaped(t *testing.T) {
	b := newBox(t)
	b.sh("for i in $(seq 50); do (sleep 0.05 &) ; done; for i in $(seq 50); do setsid -f true; done")
	eventually(t, "the orphans are gone", func() bool { return len(processes(t, b)) == 0 })
	noZombies(t, b)
}

func noZombies(t *testing.T, b *box) {
	t.Helper()
	eventually(t, "no zombies", func() bool {
		return b.sh(`cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true`) == "0"
	})
}

func processes(t *testing.T, b *box) []wire.Process {
	t.Helper()
	list, err := wire.Processes(limit(t), b.open())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The program is PID 1, and its children have its uid.
func TestPID1SurvivesEverySignal(t *testing.T) {
	b := newBox(t)
	before, err := wire.Greet(limit(t), b.open())
	if err != nil {
		t.Fatal(err)
	}
	if before.PID != 1 {
		t.Fatalf("the guest is PID %d", before.PID)
	}
	// Only signals that end a program with a core dump may be left to the kernel,
	// which drops them when they are taken off the queue; kernels also carry out
	// the others when they are queued, unless they are handled.
	dropped := uint64(0)
	for _, sig := range []unix.Signal{
		unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGSYS, unix.SIGKILL, unix.SIGSTOP,
	} {
		dropped |= 1 << (sig - 1)
	}
	if want, got := fmt.Sprintf("%016x", ^dropped), b.sh("sed -n 's/^SigCgt:[[:space:]]*//p' /proc/1/status"); got != want {
		t.Errorf("PID 1 handles signals %s, want %s", got, want)
	}
	for range 3 {
		if diff := cmp.Diff(outcome{}, b.role("signals")); diff != "" {
			t.Fatal(diff)
		}
	}
	if diff := cmp.Diff(outcome{}, b.role("flood")); diff != "" {
		t.Fatal(diff)
	}
	after, err := wire.Greet(limit(t), b.open())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}

func TestPID1CannotBeRead(t *testing.T) {
	b := newBox(t)
	if diff := cmp.Diff(outcome{}, b.role("trace")); diff != "" {
		t.Error(diff)
	}
}

func TestSignalsEndTheGroup(t *testing.T) {
	b := newBox(t)
	for _, c := range []struct {
		name   string
		script string
		signal string
		grace  time.Duration // long if it must suffice on a loaded machine
		want   outcome
	}{
		{"INT", `trap 'exit 9' INT; sleep 1000 & echo ready; wait`, "INT", time.Minute, outcome{9, "", "ready\n", ""}},
		{"TERM", `sleep 1000 & echo ready; wait`, "TERM", time.Minute, outcome{143, "TERM", "ready\n", ""}},
		{"TERM refused", `trap "" TERM; sleep 1000 & echo ready; while :; do sleep 1; done`, "TERM", 100 * time.Millisecond, outcome{137, "KILL", "ready\n", ""}},
		{"TERM refused by a child", `(trap "" TERM; echo ready; exec sleep 1000) & wait`, "TERM", 3 * time.Second, outcome{143, "TERM", "ready\n", ""}},
		{"TERM to a stopped one", `echo ready; kill -STOP $$`, "TERM", time.Minute, outcome{143, "TERM", "ready\n", ""}},
		{"HUP", `echo ready; exec sleep 1000`, "HUP", time.Minute, outcome{129, "HUP", "ready\n", ""}},
		{"unknown, then KILL", `echo ready; exec sleep 1000`, "KILL", time.Minute, outcome{137, "KILL", "ready\n", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			signals := make(chan string, 2)
			stdout := &watcher{want: "ready", found: func() { signals <- "NONSENSE"; signals <- c.signal }}
			command := wire.Exec{Argv: argv("sh", "-c", c.script), Grace: c.grace}
			exit, err := wire.Run(limit(t), b.open(), command, wire.Streams{Stdout: stdout, Signals: signals})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, outcome{exit.Code, exit.Signal, stdout.String(), ""}); diff != "" {
				t.Error(diff)
			}
			// INT is not an order to end: the background job of a script ignores it.
			if c.signal != "INT" && len(exit.Background) > 0 {
				t.Errorf("left running: %v", exit.Background)
			}
			b.sh("kill -KILL -1 || true")
		})
	}
}

// watcher is a writer that acts once when a text has passed.
type watcher struct {
	bytes.Buffer
	want  string
	found func()
}

func (w *watcher) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.want != "" && strings.Contains(w.String(), w.want) {
		w.want = ""
		w.found()
	}
	return n, err
}

func TestTimeout(t *testing.T) {
	b := newBox(t)
	for _, script := range []string{
		"sleep 1000 & sleep 1000",
		`trap "" TERM; (trap "" TERM; while :; do sleep 1; done) & while :; do sleep 1; done`,
	} {
		exit, got := b.run(wire.Exec{Argv: argv("sh", "-c", script), Timeout: 100 * time.Millisecond, Grace: 100 * time.Millisecond}, nil)
		if got.Code != 124 || !exit.TimedOut || len(exit.Background) > 0 {
			t.Errorf("%s: %+v", script, exit)
		}
	}
	if left := processes(t, b); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestCancelStillAnswers(t *testing.T) {
	b := newBox(t)
	ctx, cancel := context.WithCancel(limit(t))
	stdout := &watcher{want: "ready", found: cancel}
	exit, err := wire.Run(ctx, b.open(), wire.Exec{Argv: argv("sh", "-c", "trap 'echo saved; exit 3' TERM; sleep 1000 & echo ready; wait"), Grace: time.Minute}, wire.Streams{Stdout: stdout})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outcome{3, "", "ready\nsaved\n", ""}, outcome{exit.Code, exit.Signal, stdout.String(), ""}); diff != "" {
		t.Error(diff)
	}
}

// A client that dies takes its command along.
func TestBrokenStreamEndsTheGroup(t *testing.T) {
	b := newBox(t)
	s := b.open()
	command := wire.Exec{Argv: argv("sh", "-c", `trap "" TERM HUP; sleep 1000 & echo $$; wait; wait`), Grace: 50 * time.Millisecond}
	if err := wire.WriteJSON(s, wire.KindRequest, wire.Request{Version: wire.Version, Op: wire.OpExec, Exec: &command}); err != nil {
		t.Fatal(err)
	}
	pid := ""
	for r := wire.NewReader(s); pid == ""; {
		kind, payload, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if kind == wire.KindStdout {
			pid = strings.TrimSpace(string(payload))
		}
	}
	s.Close()
	eventually(t, "the group is gone", func() bool {
		_, got := b.run(wire.Exec{Argv: argv("sh", "-c", "kill -0 -- -"+pid)}, nil)
		return got.Code != 0
	})
}

// A keeper that dies takes its commands along, and the next one finds the
// guest as it was.
func TestNextKeeper(t *testing.T) {
	b := newBox(t)
	first := b.link
	dead := make(chan error, 1)
	stdout := &watcher{want: "ready", found: func() { first.Close() }}
	s := b.open()
	go func() {
		_, err := wire.Run(limit(t), s, wire.Exec{Argv: argv("sh", "-c", "echo ready; exec sleep 1000"), Grace: 1}, wire.Streams{Stdout: stdout})
		dead <- err
	}()
	if err := <-dead; fault.KindOf(err) != fault.Unavailable {
		t.Errorf("the first keeper's command: %v", err)
	}
	b.link = b.connect()
	eventually(t, "the first keeper's command is gone", func() bool {
		_, got := b.run(wire.Exec{Argv: argv("pgrep", "-x", "sleep")}, nil)
		return got.Code == 1
	})
}
