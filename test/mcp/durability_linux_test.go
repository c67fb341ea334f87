package mcp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// One server commits for a strict sandbox and for another in turn, and each gets
// its own durability. Its flushes are seen from outside.
func TestDurabilityOfEachSandbox(t *testing.T) {
	t.Parallel()
	program.Need(t, "strace")
	h := built.New(t)
	h.Put(h.Repo+"/.litterbox.toml", "durability = \"strict\"\n")
	h.Must("create", "strict")
	h.Put(h.Repo+"/.litterbox.toml", "")
	h.Must("create", "plain")

	trace := filepath.Join(h.Dir, "flushed")
	plain := command(h, "mcp", "--structured")
	server := exec.Command("strace", append([]string{"-f", "-y", "-qq", "-e", "trace=fsync,fdatasync", "-o", trace}, plain.Args...)...)
	server.Dir, server.Env, server.Stderr, server.SysProcAttr = plain.Dir, plain.Env, plain.Stderr, plain.SysProcAttr
	c := attach(t, h, server, newest)
	c.must("sandbox-open", args{"name": "plain"})
	c.must("sandbox-open", args{"name": "strict"})
	for range 2 {
		for _, name := range []string{"strict", "plain"} {
			if got := c.must("sandbox-exec", args{"command": "date +%N >>changed", "message": "Change", "sandbox": name}); got.num("exit_code") != 0 {
				t.Errorf("%s: %s", name, got.text)
			}
		}
	}
	_ = c.session.Close()
	_ = c.stdin.Close()
	// The trace ends with the server, unless a keeper was started under it, which
	// strace would wait for. Each line is written at once.
	late := time.AfterFunc(time.Minute, func() { _ = c.server.Process.Kill() })
	_ = c.server.Wait()
	late.Stop()

	flushed, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`sandboxes/strict-[0-9a-f]{8}/iterations\.jsonl`).Match(flushed) {
		t.Errorf("the strict sandbox's log was not flushed:\n%s", flushed)
	}
	if other := regexp.MustCompile(`.*sandboxes/plain-.*`).Find(flushed); other != nil {
		t.Errorf("flushed for another sandbox: %s", other)
	}
}
