package lima_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima"
)

// newEnvWorld is a world whose instance is the one of live environments, with mounts as
// Lima would list them.
func newEnvWorld(t *testing.T, mounts string) (w world, home string) {
	t.Helper()
	w = newWorld(t)
	home = filepath.Join(filepath.Dir(w.home), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	w.options.Env = append(w.options.Env, "HOME="+home)
	w.write(t, "listed", fmt.Sprintf(`{"name":"litterbox-env","status":"STATE","dir":"%s/litterbox-env","config":{"plain":false,"mounts":[%s]}}`+"\n", w.home, strings.ReplaceAll(mounts, "HOME", home)))
	script := strings.Replace(limactlScript, "*) say", `shell) shift 3; exec "$@" ;;
*) say`, 1)
	script = strings.ReplaceAll(script, "$dir/litterbox", "$dir/litterbox-env")
	if err := os.WriteFile(filepath.Join(filepath.Dir(w.home), "bin", "limactl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	w.machine = lima.EnvAt(filepath.Join(home, "state"), w.options)
	return w, home
}

// The machine of live environments has the home directory at its own path and nothing
// else of this machine, and counts as started when that is there.
func TestMachineOfEnvironments(t *testing.T) {
	w, home := newEnvWorld(t, `{"location":"HOME","mountPoint":"HOME","writable":true}`)
	if err := w.machine.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls := strings.Join(w.calls(t), " "); calls != "validate create start shell" {
		t.Errorf("limactl was asked: %s", calls)
	}
	data, err := os.ReadFile(filepath.Join(w.home, "template"))
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Plain        bool
		Mounts       []map[string]any
		PortForwards []map[string]any
		SSH          map[string]any
	}
	if err := json.Unmarshal(data, &template); err != nil {
		t.Fatal(err)
	}
	if template.Plain || len(template.Mounts) != 1 || template.Mounts[0]["location"] != home || template.Mounts[0]["mountPoint"] != home || template.Mounts[0]["writable"] != true {
		t.Errorf("it mounts %v", template.Mounts)
	}
	if len(template.PortForwards) != 1 || template.PortForwards[0]["ignore"] != true || template.SSH["forwardAgent"] != false {
		t.Errorf("it forwards %v, %v", template.PortForwards, template.SSH)
	}
}

// An instance that shares more than the home directory is refused.
func TestMachineOfEnvironmentsSharesNoMore(t *testing.T) {
	for _, mounts := range []string{
		`{"location":"HOME","mountPoint":"HOME"},{"location":"/etc","mountPoint":"/etc"}`,
		`{"location":"HOME","mountPoint":"/elsewhere"}`, `{"location":"/","mountPoint":"HOME"}`,
	} {
		w, _ := newEnvWorld(t, mounts)
		w.write(t, "state", "Running\n")
		err := w.machine.Ensure(t.Context())
		if err == nil || !strings.Contains(err.Error(), "shares with this machine") {
			t.Errorf("with %s: %v", mounts, err)
		}
	}
}

// Only what the machine shows can be an environment, and nothing else is made there.
func TestEnvironmentsBelowHome(t *testing.T) {
	w, home := newEnvWorld(t, "")
	d := lima.NewEnv(w.options)
	if !d.Traits().Live {
		t.Error("the driver shows no directories of this machine")
	}
	for name, spec := range map[string]driver.Spec{
		"a sandbox":         {Workspace: driver.Workspace{Path: home + "/project"}},
		"a project outside": {Workspace: driver.Workspace{Path: "/srv/project", Live: &driver.Live{}}},
		"a git outside":     {Workspace: driver.Workspace{Path: home + "/project", Live: &driver.Live{Git: &driver.LiveGit{Common: "/srv/git", Own: home + "/own"}}}},
		"home itself":       {Workspace: driver.Workspace{Path: home, Live: &driver.Live{}}},
		"beside home":       {Workspace: driver.Workspace{Path: home + "/../other", Live: &driver.Live{}}},
	} {
		if _, err := d.Acquire(t.Context(), spec); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if calls := w.calls(t); len(calls) > 0 {
		t.Errorf("limactl was asked: %s", calls)
	}
}
