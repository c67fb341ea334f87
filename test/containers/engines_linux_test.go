package containers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// engines are a Docker daemon and two Podmans of the test's own. Their mounts
// stand in mount namespaces that end with the test, and their files below dir.
type engines struct {
	dir   string
	base  string // the image's file system, a tar
	world string // enters the mount namespace of root's engines
	bare  string // and that of the ordinary user's, with control groups v2
	user  *user.User
	ready map[string]bool // whose image is imported
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
	// Sockets below it have short names, and the ordinary user walks through.
	dir, err := os.MkdirTemp("", "containers-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	e := &engines{dir: dir, user: subordinate(t), ready: map[string]bool{}}
	e.image(t)
	e.world = hold(t, "mount --make-rshared /")
	// crun refuses a machine with control groups of both versions.
	e.bare = hold(t, "mount --make-rshared / && umount --recursive --lazy /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup")
	e.put(t, "podman.conf", podmanConf+"runtime = \"runc\"\n")
	e.put(t, "rootless.conf", podmanConf+"runtime = \"crun\"\n")
	for _, made := range []string{"rootless", "rootless/home", "rootless/run"} {
		if err := errors.Join(os.Mkdir(e.path(made), 0o700), os.Chown(e.path(made), e.id(e.user.Uid), e.id(e.user.Gid))); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { end(e.path("rootless/run/libpod/tmp/pause.pid")) })
	e.daemon(t)
	return e
}

// Limits above those of the test's own are refused.
const podmanConf = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
`

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

// subordinate is the first user who has ids to map (subuid(5)).
func subordinate(t *testing.T) *user.User {
	t.Helper()
	data, _ := os.ReadFile("/etc/subuid") // not there: nobody
	for line := range strings.Lines(string(data)) {
		name, _, _ := strings.Cut(line, ":")
		if found, err := user.Lookup(name); err == nil {
			return found
		}
	}
	t.Fatal("nobody in /etc/subuid can run a rootless Podman: useradd --create-home somebody")
	return nil
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

// hold keeps a mount namespace, prepared by script, until the test ends, and
// gives the program that enters it.
func hold(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", script+" && echo ready && exec cat") // ends with our end of its pipe
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("cannot prepare a mount namespace: %v", err)
	}
	return "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/mnt"
}

// runsc is gVisor's program, which Debian does not have: the make target builds
// it from its Go module.
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

// daemon starts a Docker daemon that touches nothing of the machine's network.
func (e *engines) daemon(t *testing.T) {
	t.Helper()
	settings, err := json.Marshal(map[string]any{
		"default-runtime": "bounded",
		"runtimes": map[string]any{
			"bounded": map[string]any{"path": e.put(t, "bounded", bounded)},
			"runsc":   map[string]any{"path": runsc(t), "runtimeArgs": []string{"--ignore-cgroups", "--network=none"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(e.path("dockerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	// It ends with our end of its pipe, and its containers with it.
	cmd := exec.Command("sh", "-c", `"$@" & cat; kill $!; wait`, "sh", "nsenter", "--mount="+e.world,
		"dockerd", "--config-file", e.put(t, "daemon.json", string(settings)),
		"--data-root", e.path("docker"), "--exec-root", e.path("exec"), "--pidfile", e.path("docker.pid"),
		"--host", "unix://"+e.path("docker.sock"), "--iptables=false", "--ip6tables=false", "--bridge=none")
	cmd.Stdout, cmd.Stderr = log, log
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	deadline := time.After(time.Minute)
	for run("docker", "--host", "unix://"+e.path("docker.sock"), "version").Code != 0 {
		select {
		case <-deadline:
			said, _ := os.ReadFile(e.path("dockerd.log"))
			t.Fatalf("the Docker daemon did not answer within a minute:\n%s", said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// bounded is runc without the capabilities that this machine itself lacks:
// Docker's --privileged names them all the same, and runc refuses.
const bounded = `#!/bin/sh
previous=
for argument; do
	case $previous in
	--bundle) file=$argument/config.json ;;
	--process) file=$argument ;;
	*) file= ;;
	esac
	if [ -n "$file" ] && ! setpriv --dump | grep -q '^Capability bounding set:.*sys_resource'; then
		sed -i 's/,"CAP_SYS_RESOURCE"//g; s/"CAP_SYS_RESOURCE",//g' "$file"
	fi
	previous=$argument
done
exec runc "$@"
`

// command is the program of an engine with what makes it the test's own.
func (e *engines) command(engine string) []string {
	enter := []string{"nsenter", "--mount=" + e.world, "env", "CONTAINERS_CONF=" + e.path("podman.conf")}
	switch engine {
	case podmanEngine:
		return append(enter, "podman", "--root", e.path("podman"), "--runroot", e.path("podman-run"), "--storage-driver", "overlay")
	case rootlessEngine:
		return []string{"nsenter", "--mount=" + e.bare, "setpriv", "--reuid", e.user.Uid, "--regid", e.user.Gid, "--init-groups",
			"env", "--chdir=/", "HOME=" + e.path("rootless/home"), "XDG_RUNTIME_DIR=" + e.path("rootless/run"), "CONTAINERS_CONF=" + e.path("rootless.conf"),
			"podman", "--root", e.path("rootless/root"), "--runroot", e.path("rootless/runroot"), "--storage-driver", "overlay"}
	}
	return []string{"docker", "--host", "unix://" + e.path("docker.sock")}
}

// container is one that runs.
type container struct {
	t      *testing.T
	engine []string
	id     string
}

// run starts a container whose first process waits for nobody's children.
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
		// Whoever works in the container writes there.
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

// project runs a script where the project stands.
func (c *container) project(script string) program.Result {
	return c.sh("cd $HOME/project && " + script)
}

func (c *container) must(script string) {
	c.t.Helper()
	if got := c.sh(script); got.Code != 0 {
		c.t.Fatalf("%s exited %d:\n%s%s", script, got.Code, got.Stdout, got.Stderr)
	}
}

// run runs a program; what it could not be run for counts as a failure of its.
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

// end ends the process whose number stands in a file.
func end(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return // it never began
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
