package containers_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/engine"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// engines are a Docker daemon and two Podmans of the test's own, with their files
// below dir.
type engines struct {
	dir    string
	base   string // the image's file system, a tar
	docker *engine.Engine
	world  engine.World // of root's engines
	bare   engine.World // that of the ordinary user's, with control groups v2
	user   *user.User
	ready  map[string]bool // whose image is imported
}

// limit bounds every command: a test that hangs says nothing.
const limit = 5 * time.Minute

func newEngines(t *testing.T) *engines {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("LITTERBOX_TEST_CONTAINERS is set, and a daemon of the test's own needs root")
	}
	for _, name := range []string{"docker", "dockerd", "podman", "runc", "crun", "newuidmap", "mmdebstrap", "nsenter", "setpriv"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("LITTERBOX_TEST_CONTAINERS is set, and %s is missing: apt-get install docker.io podman runc crun uidmap mmdebstrap", name)
		}
	}
	dir := engine.Dir(t)
	subordinate, err := engine.Subordinate()
	if err != nil {
		t.Fatal(err)
	}
	e := &engines{dir: dir, user: subordinate, ready: map[string]bool{}}
	e.image(t)
	e.world = engine.NewWorld(t, "true")
	// crun refuses a machine with control groups of both versions.
	e.bare = engine.NewWorld(t, "umount --recursive --lazy /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup")
	e.put(t, "podman.conf", engine.PodmanConf("runc"))
	e.put(t, "rootless.conf", engine.PodmanConf("crun"))
	for _, made := range []string{"rootless", "rootless/home", "rootless/run"} {
		if err := errors.Join(os.Mkdir(e.path(made), 0o700), os.Chown(e.path(made), e.id(e.user.Uid), e.id(e.user.Gid))); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { engine.End(e.path("rootless/run/libpod/tmp/pause.pid")) })
	e.docker = engine.Docker(t, e.world, dir, map[string]engine.Runtime{
		"runsc": {Path: runsc(t), Args: []string{"--ignore-cgroups", "--network=none"}},
	}, nil)
	return e
}

func (e *engines) path(name string) string { return filepath.Join(e.dir, name) }

func (e *engines) id(text string) int {
	id, _ := strconv.Atoi(text) // os/user read it from a file of numbers
	return id
}

func (e *engines) put(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.WriteFile(e.path(name), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return e.path(name)
}

// image makes the file system of the containers. A path in
// LITTERBOX_TEST_CONTAINERS keeps it for the next run.
func (e *engines) image(t *testing.T) {
	t.Helper()
	e.base = e.path("base.tar")
	if filepath.IsAbs(asked) {
		e.base = asked
	}
	if _, err := os.Stat(e.base); err == nil {
		return
	}
	half := e.base + ".half.tar" // by its name mmdebstrap knows that a tar is wanted
	must(t, "mmdebstrap", "--quiet", "--variant=minbase", "--include=git,ca-certificates", "bookworm", half)
	if err := os.Rename(half, e.base); err != nil {
		t.Fatal(err)
	}
}

// runsc returns gVisor's program, which Debian does not have: the make target
// builds it from its Go module.
func runsc(t *testing.T) string {
	t.Helper()
	name := os.Getenv("LITTERBOX_TEST_RUNSC")
	if name == "" {
		name = "runsc"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("LITTERBOX_TEST_CONTAINERS is set, and gVisor is missing: %v: go install gvisor.dev/gvisor/runsc@latest, or LITTERBOX_TEST_RUNSC=/where/it/is", err)
	}
	return path
}

// command returns the program of an engine with the arguments that make it the
// test's own.
func (e *engines) command(engine string) []string {
	enter := append(e.world.Enter(), "env", "CONTAINERS_CONF="+e.path("podman.conf"))
	switch engine {
	case podmanEngine:
		return append(enter, "podman", "--root", e.path("podman"), "--runroot", e.path("podman-run"), "--storage-driver", "overlay")
	case rootlessEngine:
		return append(e.bare.Enter(), "setpriv", "--reuid", e.user.Uid, "--regid", e.user.Gid, "--init-groups",
			"env", "--chdir=/", "HOME="+e.path("rootless/home"), "XDG_RUNTIME_DIR="+e.path("rootless/run"), "CONTAINERS_CONF="+e.path("rootless.conf"),
			"podman", "--root", e.path("rootless/root"), "--runroot", e.path("rootless/runroot"), "--storage-driver", "overlay")
	}
	return e.docker.Command
}

// container is a running container.
type container struct {
	t      *testing.T
	engine []string
	id     string
}

// run starts a container whose first process reaps no children.
func (e *engines) run(t *testing.T, s start, volume bool) *container {
	t.Helper()
	engine := e.command(s.Engine)
	if !e.ready[s.Engine] {
		load := append([]string{"-c", `exec <"$0" && exec "$@"`, e.base}, engine...)
		must(t, "sh", append(load, "import", "-", "litterbox-test")...)
		e.ready[s.Engine] = true
	}
	args := append(engine[1:len(engine):len(engine)], "run", "--detach", "--network", "none", "--stop-signal", "KILL",
		"--volume", built.Path("litterbox")+":/usr/local/bin/litterbox:ro", "--env", "HOME=/tmp/home", "--workdir", "/tmp")
	if volume {
		state, err := os.MkdirTemp(e.dir, "state-")
		if err != nil {
			t.Fatal(err)
		}
		owner := 0
		if s.Engine == rootlessEngine {
			owner = e.id(e.user.Uid)
		}
		// The user in the container writes there.
		if err := errors.Join(os.Chown(state, owner, owner), os.Chmod(state, 0o777)); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--volume", state+":/state", "--env", "XDG_STATE_HOME=/state")
	}
	args = append(append(args, s.Flags...), "litterbox-test", "sleep", "infinity")
	c := &container{t: t, engine: engine, id: strings.TrimSpace(must(t, engine[0], args...))}
	t.Cleanup(func() { must(t, engine[0], append(engine[1:len(engine):len(engine)], "rm", "--force", c.id)...) })
	return c
}

// sh runs a script in the container.
func (c *container) sh(script string) program.Result {
	return run(c.engine[0], append(c.engine[1:len(c.engine):len(c.engine)], "exec", c.id, "sh", "-c", script)...)
}

// project runs a script in the project's directory.
func (c *container) project(script string) program.Result {
	return c.sh("cd $HOME/project && " + script)
}

func (c *container) must(script string) {
	c.t.Helper()
	if got := c.sh(script); got.Code != 0 {
		c.t.Fatalf("%s exited %d:\n%s%s", script, got.Code, got.Stdout, got.Stderr)
	}
}

// run runs a program; a failure to run it counts as its own failure.
func run(name string, args ...string) program.Result {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 5*time.Second
	err := cmd.Run()
	result := program.Result{Stdout: stdout.String(), Stderr: stderr.String()}
	if err != nil {
		result.Code = -1
		if state := cmd.ProcessState; state != nil && !state.Success() {
			result.Code = state.ExitCode()
		}
		result.Stderr += err.Error() + "\n"
	}
	return result
}

func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	got := run(name, args...)
	if got.Code != 0 {
		t.Fatalf("%s %q exited %d:\n%s%s", name, args, got.Code, got.Stdout, got.Stderr)
	}
	return got.Stdout
}
