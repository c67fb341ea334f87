package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// RootlessDockerNeeds are the programs that [RootlessDocker] runs, without which a
// test is skipped.
var RootlessDockerNeeds = []string{"rootlesskit", "newuidmap", "dockerd", "docker", "runc", "setpriv"}

// RootlessDocker starts a Docker daemon of the user who runs the test, with its files
// in dir, as Docker's dockerd-rootless.sh does; its containers have no network. Its
// socket is where clients look for it by themselves.
func RootlessDocker(t testing.TB, dir string) *Engine {
	t.Helper()
	home, run := filepath.Join(dir, "home"), filepath.Join(dir, "run")
	for _, made := range []string{home, run} {
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	e := &Engine{t: t, Driver: "docker", Dir: dir, log: filepath.Join(dir, "dockerd.log"), env: "XDG_RUNTIME_DIR=" + run}
	e.daemon(filepath.Join(run, "docker.sock"), nil, nil)
	user := []string{"env", "HOME=" + home, e.env, "rootlesskit"}
	t.Cleanup(func() {
		// This user may not remove files with other ids outside.
		remove := append(slices.Clone(user), "--state-dir", filepath.Join(dir, "end"), "rm", "-rf", filepath.Join(dir, "docker"), filepath.Join(dir, "exec"))
		if out, err := exec.Command(remove[0], remove[1:]...).CombinedOutput(); err != nil {
			t.Errorf("cannot remove what Docker has made: %v\n%s", err, out)
		}
	})
	e.service = slices.Concat(user, []string{
		"--state-dir", filepath.Join(dir, "kit"), "--net=host", "--copy-up=/etc", "--copy-up=/run", "--propagation=rslave",
		"sh", "-c", `rm -f /run/docker /run/containerd /run/xtables.lock; exec "$@"`, "sh",
	}, e.service)
	e.Start()
	return e
}
