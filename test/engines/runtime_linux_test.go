package engines_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/engine"
)

// bare is a runtime whose containers lack a system call that places need, as those
// of other kernels do.
const bare = `#!/bin/sh
previous=
for argument; do
	test "$previous" != --bundle || sed -i 's/"mount_setattr",//' "$argument/config.json"
	previous=$argument
done
exec "${0%/*}/bounded" "$@"
`

// A container has the runtime of container.runtime. One that the engine does not
// have, and one that cannot isolate, are refused by name and leave nothing.
func TestRuntimes(t *testing.T) {
	whole(t)
	needRoot(t, engine.DockerNeeds...)
	dir := engine.Dir(t)
	if err := os.WriteFile(filepath.Join(dir, "bare"), []byte(bare), 0o755); err != nil {
		t.Fatal(err)
	}
	runtimes := map[string]engine.Runtime{"other": {Path: filepath.Join(dir, "bounded")}, "bare": {Path: filepath.Join(dir, "bare")}}
	gvisor, err := exec.LookPath(cmp.Or(os.Getenv("LITTERBOX_TEST_RUNSC"), "runsc"))
	if err == nil {
		runtimes["runsc"] = engine.Runtime{Path: gvisor, Args: []string{"--ignore-cgroups", "--network=none"}}
	} else {
		t.Log("nothing is tried with gVisor: ", err)
	}
	e := trial{engine.Docker(t, engine.NewWorld(t, "true"), dir, runtimes, nil), t}
	e.Import()
	h := e.host(engine.Shell)
	file := filepath.Join(h.Home, ".config/litterbox/config.toml")
	settings, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	with := func(runtime string) { h.Put(file, string(settings)+"runtime = \""+runtime+"\"\n") }

	with("nowhere")
	if got := h.Litterbox("create", "box"); got.Code == 0 || !strings.Contains(got.Stderr, `cannot use the runtime "nowhere"`) || !strings.Contains(got.Stderr, "other") {
		t.Errorf("a runtime that there is not: %+v", got)
	}
	with("bare")
	if got := h.Litterbox("create", "box"); got.Code == 0 || !strings.Contains(got.Stderr, `with the runtime "bare"`) || !strings.Contains(got.Stderr, "mount_setattr") {
		t.Errorf("a runtime that cannot isolate: %+v", got)
	}
	if runtimes["runsc"].Path != "" {
		with("runsc")
		if got := h.Litterbox("create", "box"); got.Code == 0 || !strings.Contains(got.Stderr, `with the runtime "runsc"`) || !strings.Contains(got.Stderr, "kernel is gVisor") {
			t.Errorf("gVisor: %+v", got)
		}
	}
	if left := e.Must("ps", "--all", "--quiet") + e.Must("volume", "ls", "--quiet"); left != "" {
		t.Errorf("what was refused left %q", left)
	}
	with("other")
	h.Must("create", "box")
	e.want(e.Must("inspect", "--format", "{{.HostConfig.Runtime}}", e.machine()), "^other$")
	e.want(h.Must("status", "box"), "^runtime +other$")
	e.want(h.Must("exec", "box", "--", "echo", "ran"), "^ran$")
}
