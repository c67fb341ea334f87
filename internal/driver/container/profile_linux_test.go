package container_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
)

var update = flag.Bool("update", false, "write profile.json")

// The filter of containers is the one of places, without the rules against building
// them.
func TestProfile(t *testing.T) {
	want, err := seccomp.Profile()
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("profile.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), container.Profile()); diff != "" && !*update {
		t.Errorf("profile.json is not that of the policy; go test -update (- policy, + file):\n%s", diff)
	}
	allowed, _, _ := strings.Cut(string(want), "SCMP_ACT_ALLOW")
	for name, in := range map[string]bool{"clone": true, "mount": true, "move_mount": true, "bpf": false, "kexec_load": false, "keyctl": false, "clone3": false} {
		if strings.Contains(allowed, `"`+name+`"`) != in {
			t.Errorf("%s is allowed: %v, want %v", name, !in, in)
		}
	}
}
