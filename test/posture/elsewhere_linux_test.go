package posture_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// The walls in a container and on another host are those of this machine. The
// probe is there, too, and reports the ground of places.
func TestPostureElsewhere(t *testing.T) {
	e := program.NeedElsewhere(t)
	h := built.New(t)
	h.Move(e)
	h.Must("create", box)
	h.Must("cp", h.Program("probe"), box+":/tmp/probe")
	said, err := h.In(e, "exec /bin/probe")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	outside := look(t, program.Result{Stdout: said})
	inside := look(t, h.Inside(box, "/tmp/probe"))
	ground := there(outside)
	if len(e.Machine) > 0 { // no image names its own
		ground.search = filepath.SplitList(os.Getenv("PATH"))
	}
	if diff := cmp.Diff(expected(t, h, ground), normalised(h, inside, outside)); diff != "" {
		t.Errorf("what a process holds on %s (-want +got):\n%s", e.Name, diff)
	}
}

// there describes a machine with a root file system of busybox and little more.
func there(outside report) ground {
	one := func(field string) int {
		id, _ := strconv.Atoi(strings.Fields(outside.Status[field])[0])
		return id
	}
	exists := func(path string) bool {
		first, below, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if first == "sys" && below != "" {
			return slices.ContainsFunc(outside.Mounts, func(mount string) bool { return strings.HasPrefix(mount, "/sys ") })
		}
		return slices.Contains(outside.Root, first)
	}
	return ground{
		outside: outside, uid: one("Uid"), gid: one("Gid"), name: "litterbox", state: "/.litterbox-machine", program: "/.litterbox-machine",
		commands: []string{"litterbox-guest", "probe"}, search: strings.Split("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ":"),
		// Empty until a rule or a login has the sandbox trust the authority of its
		// keeper, whose certificate the keeper then sends there. No variable names
		// them before. Here the same two files are mounted (roots).
		lent:   []string{allRoots, ownRoots},
		exists: exists, directory: exists,
	}
}
