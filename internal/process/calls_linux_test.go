package process_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// A machine that runs the tests of sandboxes has every call that they need.
func TestNeededCallsAreNotRefused(t *testing.T) {
	t.Parallel()
	got := process.Refused("openat2", "memfd_create", "pidfd_open", "open_tree", "mount_setattr", "no such call")
	if diff := cmp.Diff([]string{"no such call"}, got); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}
