package hosts_test

import (
	"os"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// The suites for sandboxes of this machine run on those of a host that ssh
// reaches: attacks, the posture of a process, and random operations.
func TestSuites(t *testing.T) {
	if os.Getenv("LITTERBOX_TEST_MACHINES") == "" {
		t.Skip("LITTERBOX_TEST_MACHINES is not set: make test-machines runs it")
	}
	if os.Getuid() != 0 {
		t.Skip("a host with a root file system of its own needs root")
	}
	h := open(t)
	if err := built.Add("test/posture/probe"); err != nil {
		t.Fatal(err)
	}
	probe, err := os.ReadFile(built.Path("probe"))
	if err != nil {
		t.Fatal(err)
	}
	h.far.put(h.far.dir, "bin/probe", string(probe), 0o755)
	program.Suites(t, program.Elsewhere{
		Name: "a host", Env: []string{"PATH=" + h.SearchPath()}, Settings: "machine = \"big\"\n",
		Machine: []string{"big", h.address(), "--identity", h.identity},
		Enter:   strings.Join(h.far.enter, " "),
	}, "attack", "posture", "soak")
}
