package engine

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// PodmanNeeds are the programs that [Podman] runs, without which a test is
// skipped; RootlessNeeds those of [Rootless].
var (
	PodmanNeeds   = []string{"podman", "conmon", "runc", "nsenter"}
	RootlessNeeds = []string{"podman", "conmon", "runc", "newuidmap"}
)

// PodmanConf returns a containers.conf for machines without systemd. Limits above
// the test's own are refused. The watcher of a command started by the API would
// stay for five minutes after it.
func PodmanConf(runtime string) string {
	return `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
exit_command_delay = 1
runtime = "` + runtime + `"
`
}

// Podman starts the API of root's Podman, with its files in dir.
func Podman(t testing.TB, world World, dir string) *Engine {
	t.Helper()
	conf := put(t, filepath.Join(dir, "podman.conf"), PodmanConf("runc"))
	command := append(world.Enter(), "env", "CONTAINERS_CONF="+conf,
		"podman", "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "runroot"), "--storage-driver", "overlay")
	// Podman's containers do not end with the process that serves its API.
	t.Cleanup(func() {
		if out, err := exec.Command(command[0], append(command[1:len(command):len(command)], "rm", "--all", "--force", "--time", "0")...).CombinedOutput(); err != nil {
			t.Errorf("cannot remove Podman's containers: %v\n%s", err, out)
		}
	})
	return api(t, world, dir, filepath.Join(dir, "podman.sock"), command)
}

// Rootless starts the API of a Podman of the user who runs the test, with its
// files in dir.
func Rootless(t testing.TB, dir string) *Engine {
	t.Helper()
	conf := put(t, filepath.Join(dir, "podman.conf"), PodmanConf("runc"))
	for _, made := range []string{"home", "run"} {
		if err := os.Mkdir(filepath.Join(dir, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	command := []string{"env", "HOME=" + filepath.Join(dir, "home"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "CONTAINERS_CONF=" + conf,
		"podman", "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "runroot"), "--storage-driver", "overlay"}
	t.Cleanup(func() {
		// This user may not remove files with other ids inside.
		if out, err := exec.Command(command[0], append(command[1:], "system", "reset", "--force")...).CombinedOutput(); err != nil {
			t.Errorf("cannot remove what Podman has made: %v\n%s", err, out)
		}
		End(filepath.Join(dir, "run/libpod/tmp/pause.pid"))
	})
	return api(t, World{}, dir, filepath.Join(dir, "run/podman.sock"), command)
}

// api serves the API of the Podman that a command runs.
func api(t testing.TB, world World, dir, socket string, command []string) *Engine {
	t.Helper()
	e := &Engine{t: t, world: world, Driver: "podman", Dir: dir, Address: "unix://" + socket, log: filepath.Join(dir, "podman.log"), Command: command}
	e.service = append(command[len(world.Enter()):len(command):len(command)], "system", "service", "--time", "0", e.Address)
	e.Start()
	return e
}

// Subordinate returns the first user who has ids to map (subuid(5)).
func Subordinate() (*user.User, error) {
	data, err := os.ReadFile("/etc/subuid")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		name, _, _ := strings.Cut(line, ":")
		if found, err := user.Lookup(name); err == nil {
			return found, nil
		}
	}
	return nil, errors.New("no user in /etc/subuid can run a rootless Podman: useradd --create-home somebody")
}

// End ends the process whose number is in a file.
func End(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return // it never began
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && pid > 1 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
