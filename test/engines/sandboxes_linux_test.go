package engines_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/test/engine"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

func TestDocker(t *testing.T) {
	e := docker(t, nil)
	e.sandboxes(e.host(engine.Shell))
}

func TestPodman(t *testing.T) {
	whole(t)
	e := podman(t)
	e.sandboxes(e.host(engine.Shell))
}

func TestRootlessPodman(t *testing.T) {
	whole(t)
	e := rootless(t)
	e.sandboxes(e.host(engine.Shell))
}

// No variable names this engine: its socket is in $XDG_RUNTIME_DIR.
func TestRootlessDocker(t *testing.T) {
	whole(t)
	e := rootlessDocker(t)
	e.sandboxes(e.host(engine.Shell))
}

// sandboxes is the life of sandboxes in a container: commits come over its link,
// and the container itself may end at any time.
func (e trial) sandboxes(h *program.Host) {
	t, want := e.T, e.want
	want(h.Must("doctor", "--driver", e.Driver), "^isolation +full, available")
	h.Must("create", "box")
	want(h.Must("list"), "^box +running .* full ")
	want(h.Must("status", "box"), "^driver +"+e.Driver+"$")
	want(h.Must("exec", "box", "--", "sh", "-c", "id -u; mkdir d; echo new >d/made; echo ran"), "^ran$")
	want(h.Git("show", "box:d/made"), "^new$")
	want(h.Must("diff", "box"), `^\+new$`)

	// The container's properties.
	name := e.machine()
	want(e.Must("inspect", "--format", "{{.HostConfig.NetworkMode}} {{.HostConfig.ReadonlyRootfs}} {{.Config.User}} {{.HostConfig.Privileged}}", name), `^none true 1000:1000 false$`)
	status := e.Must("exec", name, "cat", "/proc/1/status")
	for _, line := range []string{`Uid:\t1000\t1000\t1000\t1000`, `CapEff:\t0+`, `CapBnd:\t0+`, `NoNewPrivs:\t1`, `Seccomp:\t2`} {
		want(status, "^"+line+"$")
	}

	// The engine runs on this kernel, and its containers may only connect here.
	if way := h.Network("box"); way != sandbox.NetworkDescriptors && os.Getenv(program.Descriptors) != "off" {
		t.Errorf("connections leave as %q, want %q", way, sandbox.NetworkDescriptors)
	}
	want(e.Must("inspect", "--format", `{{range .Mounts}}{{.Type}} {{.Destination}} {{.RW}}{{"\n"}}{{end}}`, name), `^bind /\.litterbox-meeting false$`)
	h.Must("exec", "box", "--", "sh", "-c", "test ! -e /.litterbox-meeting && test ! -e /.litterbox-machine")

	// Nothing leaves except by the keeper's rules.
	got := h.Inside("box", "connect", "to", "192.0.2.7:443")
	if got.Code == 0 {
		t.Error("an address was reached that no rule allows")
	}
	want(got.Stderr, "the network refused 192.0.2.7:443")

	// A sandbox that was stopped, and paused.
	h.Must("stop", "box")
	want(h.Must("diff", "box"), `^\+new$`)
	want(h.Must("exec", "box", "--", "cat", "d/made"), "^new$")
	h.Must("pause", "box")
	want(h.Must("list"), "^box +paused ")
	h.Must("resume", "box")

	// A second one of the same image shares the container.
	h.Must("create", "other")
	want(h.Must("exec", "other", "--", "sh", "-c", "test ! -e d && echo apart"), "^apart$")
	e.machine()
	want(h.Must("df", "--all"), "^"+e.Driver+" container "+name+" of "+regexp.QuoteMeta(engine.Shell)+": [0-9].*, running, 2 sandboxes in it$")
	h.Must("delete", "--force", "--purge", "other")

	// The container is killed, and then removed: its volume has everything.
	for round, end := range []string{"kill", "rm"} {
		args := []string{end, name}
		if end == "rm" {
			args = []string{"rm", "--force", name}
		}
		e.Must(args...)
		want(h.Must("exec", "box", "--", "sh", "-c", "cat d/made; echo after >after-"+end), "^new$")
		if commits := strings.Count(h.Git("log", "--format=%s", "main..box"), "after-"+end); commits != 1 {
			t.Errorf("round %d: %d commits have the command, want one", round, commits)
		}
	}

	// A paused container is unreachable, not lost. Without control groups an engine
	// pauses none.
	if _, err := e.Engine.Run("pause", name); err == nil {
		if got := h.Inside("box", "true"); got.Code == 0 {
			t.Error("a command ran in a paused container")
		}
		e.Must("unpause", name)
	} else if !strings.Contains(err.Error(), "can not pause containers on rootless containers with cgroup V1") && !strings.Contains(err.Error(), "cgroups not configured for container") {
		t.Error(err)
	}
	want(h.Must("exec", "box", "--", "cat", "after-rm"), "^after$")

	h.Must("merge", "--yes", "box")
	if data, err := os.ReadFile(filepath.Join(h.Repo, "d/made")); err != nil || string(data) != "new\n" {
		t.Errorf("merged %q, %v", data, err)
	}

	// The volume is removed: nothing is taken for removed files.
	h.Must("create", "lost")
	h.Must("exec", "lost", "--", "sh", "-c", "echo kept >kept")
	tip := h.Git("rev-parse", "lost")
	h.Must("stop", "lost")
	e.Must("rm", "--force", name)
	e.Must("volume", "rm", name)
	if got := h.Inside("lost", "true"); got.Code == 0 {
		t.Error("a sandbox started without its files")
	} else {
		want(got.Stderr, "no longer has the files")
	}
	if now := h.Git("rev-parse", "lost"); now != tip {
		t.Errorf("the branch moved to %s, from %s", now, tip)
	}
	h.Must("delete", "--force", "--purge", "lost")
	e.prunes(h)
}

// prunes removes containers and volumes that no sandbox is in, and nothing that is
// not litterbox's.
func (e trial) prunes(h *program.Host) {
	e.Must("volume", "create", "foreign")
	h.Must("create", "last")
	name := e.machine()
	if got := h.Must("prune", "--all", "--dry-run"); strings.Contains(got, name) {
		e.Errorf("a container with a sandbox would go:\n%s", got)
	}
	h.Must("delete", "--force", "--purge", "last")
	e.golden(h, name)
	e.want(h.Must("prune", "--all", "--dry-run"), "^container "+name+" ")
	e.machine() // it was only shown
	h.Must("prune", "--all", "--yes")
	if got := e.Must("volume", "ls", "--quiet"); got != "foreign" {
		e.Errorf("volumes after prune: %q", got)
	}
	if got := e.Must("ps", "--all", "--quiet"); got != "" {
		e.Errorf("containers after prune: %q", got)
	}
	if got := h.Must("df", "--all"); strings.Contains(got, " container ") {
		e.Errorf("df after prune:\n%s", got)
	}
	e.Must("volume", "rm", "foreign")
}

// golden builds one in the container called name, which it keeps from being pruned.
func (e trial) golden(h *program.Host, name string) {
	h.Put(filepath.Join(h.Repo, ".gitignore"), "built/\n")
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "[container]\nsetup-command = [\"sh\", \"-c\", \"mkdir built; echo once >built/it; echo note >~/note\"]\n")
	h.Git("add", "--all")
	h.Git("commit", "--quiet", "--message", "what a golden is made from")
	h.Must("trust")
	e.want(h.Must("build"), "^built golden default ")
	if got := h.Must("prune", "--all", "--dry-run"); strings.Contains(got, name) {
		e.Errorf("a container with a golden would go:\n%s", got)
	}
	e.want(h.Must("df", "--all"), ", 0 sandboxes and 1 golden in it$")
	h.Must("create", "of-golden")
	e.want(h.Must("exec", "of-golden", "--no-commit", "--", "sh", "-c", "cat built/it ~/note; echo mine >built/it"), "^once\nnote$")
	e.want(h.Must("golden", "show"), "^used by +of-golden$")
	archive := filepath.Join(h.Dir, "golden.tgz")
	h.Must("golden", "export", "-o", archive)
	if got := h.Litterbox("golden", "import", archive, "--name", "again"); got.Code == 0 || !strings.Contains(got.Stderr, "takes no goldens") || !strings.Contains(got.Stderr, "litterbox build again") {
		e.Errorf("a golden is imported into a container: %+v", got)
	}
	h.Must("golden", "delete")
	e.want(h.Must("exec", "of-golden", "--no-commit", "--", "cat", "built/it"), "^mine$")
	h.Must("delete", "--force", "--purge", "of-golden")
}
