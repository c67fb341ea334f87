package machines_test

import (
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// A container's processes can only ever have some capabilities, whatever user
// they run as. That does not reach into user namespaces made there: a sandbox
// is set up with all of them.
func TestFewCapabilities(t *testing.T) {
	program.Need(t, "unshare", "setpriv")
	h := built.New(t)
	// Those that Docker gives to a container.
	const few = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap"
	run := func(script string) program.Result {
		return h.Command(h.Repo, "unshare", "--user", "--map-root-user", "setpriv", "--bounding-set", few, "sh", "-c", script)
	}
	litterbox := h.Program("litterbox") + " "
	if got := run(litterbox + "doctor"); got.Code != 0 {
		t.Fatalf("doctor exited %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	got := run(litterbox + "create box && " + litterbox + "exec box -- sh -c 'echo work >made' && git show box:made && " + litterbox + "delete --force box")
	if got.Code != 0 || !strings.Contains(got.Stdout, "work\n") {
		t.Errorf("exit %d, want work:\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}
