package network_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// With descriptors off, and in another machine, the lease says that connections go
// over streams, and the same is allowed, refused and recorded. make test-streams
// runs all tests of the network with descriptors off.
func TestStreams(t *testing.T) {
	t.Run("here", func(t *testing.T) { testStreams(t, built.New(t).With(program.Descriptors+"=off")) })
	t.Run("in another machine", func(t *testing.T) { testStreams(t, built.New(t), "--driver", "child") })
}

func testStreams(t *testing.T, h *program.Host, create ...string) {
	allowed, other := serve(t, address4), serve(t, address4)
	h.Must(append([]string{"create", "box"}, create...)...)
	leases, err := filepath.Glob(filepath.Join(h.State, "litterbox/sandboxes/box-????????/lease.json"))
	if err != nil || len(leases) != 1 {
		t.Fatalf("leases %q: %v", leases, err)
	}
	if lease, err := os.ReadFile(leases[0]); err != nil || !strings.Contains(strings.ReplaceAll(string(lease), " ", ""), `"network":"streams"`) {
		t.Fatalf("the lease does not say that connections go over streams: %v\n%s", err, lease)
	}
	h.Must("allow", "box", allowed.Addr().String())
	if got := h.Inside("box", "curl", "-sS", "-m", "60", allowed.url()); got.Stdout != "hello from outside\n" {
		t.Errorf("allowed: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := h.Inside("box", "curl", "-sS", "-m", "60", other.url()); got.Code == 0 || got.Code == 28 || other.visits.Load() != 0 {
		t.Errorf("not allowed: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	by := map[string]string{}
	for _, attempt := range network(t, h).Seen {
		by[attempt.Verdict] = attempt.Process
	}
	if !strings.HasPrefix(by["allowed"], "curl (") || !strings.HasPrefix(by["denied"], "curl (") {
		t.Errorf("recorded of the processes: %q", by)
	}
}
