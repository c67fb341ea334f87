// Package soak_test carries out random operations on many sandboxes for a given
// time, with kills of client, keeper and guest among them, and looks for losses
// and leftovers.
package soak_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// setting reads a number or a duration of the run, which make soak passes on.
func setting[T any](t *testing.T, name string, fallback T, parse func(string) (T, error)) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	value, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// workers is how many operations go on at once.
const workers = 4

// TestSoak is skipped unless LITTERBOX_SOAK says how long it takes.
// LITTERBOX_SOAK_SANDBOXES is how many sandboxes there are at most, and
// LITTERBOX_SOAK_SEED repeats the choices of an earlier run (not its timing).
func TestSoak(t *testing.T) {
	if os.Getenv("LITTERBOX_SOAK") == "" {
		t.Skip("only by make soak, or with LITTERBOX_SOAK=10m")
	}
	length := setting(t, "LITTERBOX_SOAK", 10*time.Minute, time.ParseDuration)
	count := setting(t, "LITTERBOX_SOAK_SANDBOXES", 50, strconv.Atoi)
	seed := setting(t, "LITTERBOX_SOAK_SEED", time.Now().UnixNano(), func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	t.Logf("seed %d: %d sandboxes for %v", seed, count, length)

	h := built.New(t)
	serves := `["python3", "-c", """` + answer + `"""]`
	var far *program.Elsewhere
	if os.Getenv(program.ElsewhereVariable) == "" {
		program.Need(t, "python3")
	} else {
		e := program.NeedElsewhere(t)
		t.Logf("on %s", e.Name)
		h.Move(e)
		serves, far = busyboxAnswer, &e
	}
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), fmt.Sprintf(configuration, serves))
	h.Put(filepath.Join(h.Repo, ".gitignore"), "build/\n")
	h.Git("add", ".litterbox.toml", ".gitignore")
	h.Git("commit", "--quiet", "-m", "Configure litterbox")
	h.Must("trust")
	before := census(h)

	// This one is never killed or deleted: growth in it is a leak.
	steady := ownPrefix + "steady"
	h.Must("create", steady)
	work(h, steady, 20)
	early := weigh(h, steady, far == nil)

	boxes := make([]*box, count)
	for i := range boxes {
		boxes[i] = &box{Host: h, far: far, name: fmt.Sprintf("%s%d", ownPrefix, i)}
	}
	deadline := time.Now().Add(length)
	var done sync.Map
	var running sync.WaitGroup
	for worker := range workers {
		random := rand.New(rand.NewPCG(uint64(seed), uint64(worker)))
		running.Go(func() {
			for n := 0; time.Now().Before(deadline) && !t.Failed(); n++ {
				b := boxes[random.IntN(len(boxes))]
				if !b.mu.TryLock() {
					continue
				}
				name := b.step(random)
				b.mu.Unlock()
				counter, _ := done.LoadOrStore(name, new(int64Counter))
				counter.(*int64Counter).add()
				if worker == 0 && n%10 == 0 {
					work(h, steady, 1)
				}
			}
		})
	}
	running.Wait()
	done.Range(func(name, counter any) bool {
		t.Logf("%-16s %d", name, counter.(*int64Counter).n)
		return true
	})
	if t.Failed() {
		return
	}
	late := weigh(h, steady, far == nil)
	late.compare(t, early)
	for _, b := range boxes {
		if b.exists {
			b.settle()
			b.verify()
		}
	}
	h.Fsck()
	for _, b := range boxes {
		if b.exists {
			h.Must("delete", "--force", b.name)
		}
		b.dropGolden()
		b.dropEnvironment()
	}
	h.Must("delete", "--force", steady)
	h.Must("trash", "empty", "--yes")
	h.Must("doctor", "--fix")
	if left := h.Must("doctor"); strings.Contains(left, "left behind") {
		t.Errorf("doctor --fix leaves something behind:\n%s", left)
	}
	awaitCensus(t, h, before)
}

type int64Counter struct {
	mu sync.Mutex
	n  int64
}

func (c *int64Counter) add() {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
}

// configuration gives every sandbox a service behind a forwarded port, and goldens
// two parts that say of which build they are.
const configuration = `
[hooks]
post_sync = ["sh", "-c", "mkdir -p build && cat /proc/sys/kernel/random/uuid >~/golden && cat ~/golden >build/golden"]

[container]
ports = ["web"]

[container.services.web]
command = %s
ready = {port = "web"}
`

// What answers behind the port, with Python and with busybox.
const (
	answer = `
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'it works')
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT_WEB'])), Answer).serve_forever()
`
	busyboxAnswer = `["sh", "-c", "mkdir -p /tmp/www && printf 'it works' >/tmp/www/index.html && exec busybox httpd -f -p 127.0.0.1:$PORT_WEB -h /tmp/www"]`
)

// work commits a few times.
func work(h *program.Host, name string, times int) {
	for range times {
		if got := h.InsideShell(name, "date +%s%N >now; cat now >>all"); got.Code != 0 {
			h.Errorf("exec %s: %+v", name, got)
			return
		}
	}
}
