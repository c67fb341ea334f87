// Package engines runs sandboxes of the drivers docker and podman with the true
// program, on engines of the test's own (package engine). A sample of them is in
// every run of the tests as root; `make test-engines` runs all.
package engines_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/engine"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }, "test/engines/connect", "test/posture/probe"))
}

// trial is an engine with sandboxes on it.
type trial struct {
	*engine.Engine
	*testing.T
}

// needRoot skips a test if no daemon can be started.
func needRoot(t *testing.T, programs ...string) {
	t.Helper()
	program.Need(t, append(programs, "busybox")...)
	if os.Geteuid() != 0 {
		t.Skip("an engine of the test's own needs root")
	}
}

// whole skips tests that are not in every run.
func whole(t *testing.T) {
	t.Helper()
	if os.Getenv("LITTERBOX_TEST_ENGINES") == "" {
		t.Skip("LITTERBOX_TEST_ENGINES is not set: make test-engines runs it")
	}
}

// docker starts a Docker daemon.
func docker(t *testing.T, settings map[string]any) trial {
	t.Helper()
	needRoot(t, engine.DockerNeeds...)
	e := engine.Docker(t, engine.NewWorld(t, "true"), engine.Dir(t), nil, settings)
	e.Import(built.Path("connect"))
	return trial{e, t}
}

// podman starts the API of Podman.
func podman(t *testing.T) trial {
	t.Helper()
	needRoot(t, engine.PodmanNeeds...)
	e := engine.Podman(t, engine.NewWorld(t, "true"), engine.Dir(t))
	e.Import(built.Path("connect"))
	return trial{e, t}
}

// rootless starts that of an ordinary user.
func rootless(t *testing.T) trial {
	t.Helper()
	program.Need(t, append(engine.RootlessNeeds, "busybox")...)
	if os.Geteuid() == 0 {
		t.Skip("an ordinary user runs a rootless engine")
	}
	e := engine.Rootless(t, engine.Dir(t))
	e.Import(built.Path("connect"))
	return trial{e, t}
}

// rootlessDocker starts a Docker daemon of an ordinary user.
func rootlessDocker(t *testing.T) trial {
	t.Helper()
	program.Need(t, append(engine.RootlessDockerNeeds, "busybox")...)
	if os.Geteuid() == 0 {
		t.Skip("an ordinary user runs a rootless engine")
	}
	e := engine.RootlessDocker(t, engine.Dir(t))
	e.Import(built.Path("connect"))
	return trial{e, t}
}

// host returns a machine that knows the engine, with an image in its settings.
func (e trial) host(image string) *program.Host {
	h := built.New(e.T).With(e.Env())
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "driver = \""+e.Driver+"\"\n[container]\nbase-image = \""+image+"\"\n")
	return h
}

// machine returns the one container that a host has made.
func (e trial) machine() string {
	e.Helper()
	names := strings.Fields(e.Must("ps", "--all", "--filter", "label=dev.litterbox.state", "--format", "{{.Names}}"))
	if len(names) != 1 {
		e.Fatalf("%d containers are litterbox's, want one: %q", len(names), names)
	}
	return names[0]
}

// want looks for a pattern in some text.
func (e trial) want(got, pattern string) {
	e.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(got) {
		e.Errorf("want %q in:\n%s", pattern, got)
	}
}
