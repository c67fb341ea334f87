package attack_test

import (
	"encoding/json"
	"os"
	"strings"
	"time"
)

// bombAttacks use up the machine's resources. Each runs in a sandbox with
// small limits, so that the testing machine survives a bomb that works; its
// control is the same bomb with a distant limit, which must get through. What
// counts is the aftermath: the sandbox ends the bomb, records why, and serves
// the next command, and the host does not notice.
func bombAttacks() []attack {
	return []attack{
		bomb{
			name:  "take all memory",
			limit: "memory=200MiB", want: "oom", needs: "python3",
			// In one process.
			script: "b = []\n" + slowly("b.append(bytearray(b'x') * (10 << 20))"),
		}.attack(),
		bomb{
			name:  "take all memory with many processes",
			limit: "memory=200MiB", want: "oom", needs: "python3",
			script: "import os, time\nk = []\nfor i in range(40):\n    p = os.fork()\n    if p == 0:\n        b = bytearray(b'x') * (12 << 20)\n        time.sleep(4)\n        os._exit(0)\n    k.append(p)\n" +
				"if all(os.waitpid(p, 0)[1] == 0 for p in k): print('survived')",
		}.attack(),
		bomb{
			name:  "fill memory with files",
			limit: "memory=200MiB", want: "", needs: "python3",
			script: slowly("open('/dev/shm/x', 'ab').write(b'x' * (10 << 20))"),
		}.attack(),
		bomb{
			name:  "fill memory with files that have no name",
			limit: "memory=200MiB", want: "oom", needs: "python3",
			script: "import os\nf = os.memfd_create('x')\n" + slowly("os.write(f, b'x' * (10 << 20))"),
		}.attack(),
		bomb{
			name:  "fill memory with what sockets hold",
			limit: "memory=200MiB", want: "oom", needs: "python3",
			script: "import socket, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)\nkept = []\n" +
				"def fill():\n    a, b = socket.socketpair()\n    a.setblocking(False)\n    kept.append((a, b))\n    try:\n        while True: a.send(b'x' * 65536)\n    except BlockingIOError: pass\n" +
				slowly("[fill() for j in range(50)]"),
		}.attack(),
		bomb{
			name:  "fill memory with page tables",
			limit: "memory=200MiB", want: "oom", needs: "python3",
			script: "import mmap\nkept = []\n" +
				slowly("m = mmap.mmap(-1, 5 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000); kept.append(m); [m[j] for j in range(0, 5 << 30, 2 << 20)]"),
		}.attack(),
		bomb{
			name:  "fork without end",
			limit: "pids=120", want: "pids", needs: "python3",
			// It never gives up, as the classic one of the shell does not.
			script: "import os, time\nn = 0\nwhile n < 300:\n    try:\n        if os.fork() == 0:\n            time.sleep(60)\n            os._exit(0)\n        n += 1\n    except OSError:\n        pass\nprint('survived')\nos.system('pkill -P %d' % os.getpid())",
		}.attack(),
		bomb{
			name:  "fill the disk",
			limit: "disk=40MiB", want: "disk", needs: "python3",
			script: slowly("open('file%d' % i, 'wb').write(b'x' * (2 << 20))"),
		}.attack(),
		bomb{
			name:  "fill the disk with a sparse giant's data in the home",
			limit: "disk=40MiB", want: "disk", needs: "python3",
			script: "import os\nf = open(os.path.expanduser('~/giant'), 'wb')\nf.truncate(1 << 40)\n" + slowly("f.write(os.urandom(2 << 20)); f.flush()"),
		}.attack(),
		bomb{
			name:  "use up the inodes",
			limit: "disk=40MiB", want: "disk", needs: "python3",
			script: "import os\nos.makedirs('/tmp/many', exist_ok=True)\n" + slowly("[open('/tmp/many/%d-%d' % (i, j), 'w').close() for j in range(500)]"),
		}.attack(),
		bomb{
			name:  "hide files in a directory without permissions",
			limit: "disk=40MiB", want: "disk", needs: "python3",
			script: "import os\nos.makedirs('/tmp/hidden/in', exist_ok=True)\nf = open('/tmp/hidden/in/f', 'wb')\nos.chmod('/tmp/hidden/in', 0)\n" +
				slowly("f.write(b'x' * (2 << 20)); f.flush()"),
		}.attack(),
		bomb{
			name:  "flood the log of what was left running",
			limit: "memory=300MiB", want: "", needs: "python3",
			// Left in the background: it goes to a bounded file inside.
			script: "import os, sys\nif os.fork() == 0:\n    os.setsid()\n    x = b'y' * (1 << 20)\n    for i in range(300):\n        os.write(1, x)\n    open('/tmp/flooded', 'w').close()\n    os._exit(0)\nprint('left')",
			check: func(w *world) {
				w.Inside(box, "/bin/sh", "-c", "until test -e /tmp/flooded; do sleep 0.1; done")
				got := w.Inside(box, "/bin/sh", "-c", "cat /run/litterbox/* | wc -c")
				if n := strings.TrimSpace(got.Stdout); len(n) > 8 || n == "0" {
					w.Errorf("the log of a flood of 300 MiB holds %s bytes: %s", n, got.Stderr)
				}
			},
		}.attack(),
		bomb{
			name:  "run for ever",
			limit: "time=2s", want: "time", needs: "python3",
			script: "import signal, time\n[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]\nt = time.time()\nwhile time.time() < t + TIMES / 10: pass\nprint('survived')",
		}.attack(),
	}
}

// slowly repeats a line of Python many times, a little slower than a disk: a
// bomb that ends before anything could look has also done its worst.
func slowly(line string) string {
	return strings.ReplaceAll("import time\nfor i in range(TIMES):\n    LINE\n    time.sleep(0.06)\nprint('survived')", "LINE", line)
}

func itoa(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// bomb is one way to use up something.
type bomb struct {
	name   string
	limit  string // for litterbox limits
	want   string // the limit that the event names; empty if refusing is enough
	needs  string
	script string // Python that prints "survived" if it was not stopped; TIMES is its length
	check  func(*world)
}

func (b bomb) attack() attack {
	return attack{
		Name: b.name,
		Control: func(w *world) {
			b.require(w)
			w.sandbox()
			name, _, _ := strings.Cut(b.limit, "=")
			wide := map[string]string{"memory": "2GiB", "pids": "2000", "disk": "2GiB", "time": "1h"}[name]
			w.Must("limits", box, name+"="+wide)
			got := w.Inside(box, "python3", "-c", b.lasting(60))
			if got.Code != 0 || b.check == nil && !strings.Contains(got.Stdout, "survived") {
				w.Errorf("the bomb does not go off where nothing stops it: %d\n%s%s", got.Code, got.Stdout, got.Stderr)
			}
			if found := w.reached(); len(found) > 0 {
				w.Errorf("limits were reached: %q", found)
			}
		},
		Run: func(w *world) {
			b.require(w)
			w.sandbox()
			w.Must("limits", box, b.limit)
			host := w.watchHost()
			// Far longer than stopping it may take on a busy machine.
			got := w.Inside(box, "python3", "-c", b.lasting(200))
			worst := host()
			if strings.Contains(got.Stdout, "survived") {
				w.Errorf("the bomb was not stopped:\n%s", got.Stdout)
			}
			if b.check != nil {
				b.check(w)
			}
			// The keeper of the limit reports it when it next looks.
			var found string
			if b.want != "" && !w.comes(func() bool {
				found = strings.Join(w.reached(), " ")
				return strings.Contains(found, b.want)
			}) {
				w.Errorf("the events name %q, want %q; it ended with %d: %s", found, b.want, got.Code, got.Stderr)
			}
			// A host that no longer answers has lost, whatever is recorded.
			if worst > hostPatience {
				w.Errorf("the host stood still for %s", worst)
			}
			if got := w.Inside(box, "echo", "still here"); got.Code != 0 || !strings.Contains(got.Stdout, "still here") {
				w.Errorf("the sandbox no longer answers: %d %s", got.Code, got.Stderr)
			}
		},
	}
}

// lasting returns the bomb with a number of rounds.
func (b bomb) lasting(times int) string { return strings.ReplaceAll(b.script, "TIMES", itoa(times)) }

func (b bomb) require(w *world) {
	w.Helper()
	if w.Shell("command -v "+b.needs).Code == 0 {
		return
	}
	if strings.Contains(os.Getenv("LITTERBOX_TEST_REQUIRE"), b.needs) {
		w.Fatalf("LITTERBOX_TEST_REQUIRE demands %s, and it is not there", b.needs)
	}
	w.Skipf("%s is not there", b.needs)
}

// reached lists the limits that events say were reached.
func (w *world) reached() []string {
	w.Helper()
	var limits []string
	for line := range strings.Lines(w.Must("events", box, "--json")) {
		var event struct {
			Type string
			Data map[string]string
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			w.Fatalf("cannot read the event %q: %v", line, err)
		}
		if event.Type == "limit.reached" {
			limits = append(limits, event.Data["limit"])
		}
	}
	return limits
}

// hostPatience is how long a process of the host may wait for its turn. A bomb
// that works takes minutes; a busy machine some seconds.
const hostPatience = 20 * time.Second

// watchHost starts to measure how long a process of the host waits for its
// turn, and returns a function that returns the longest wait.
func (w *world) watchHost() func() time.Duration {
	stop := make(chan struct{})
	longest := make(chan time.Duration)
	go func() {
		var worst time.Duration
		for {
			began := time.Now()
			select {
			case <-stop:
				longest <- worst
				return
			case <-time.After(50 * time.Millisecond):
			}
			worst = max(worst, time.Since(began)-50*time.Millisecond)
		}
	}()
	return func() time.Duration { close(stop); return <-longest }
}
