package engines_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container/moby"
	"github.com/litterbox-sandbox/litterbox/internal/driver/drivertest"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/test/engine"
)

// What package driver promises holds for places in containers.
func TestContract(t *testing.T) {
	whole(t)
	program := outpost(t)
	for name, start := range map[string]func(*testing.T) trial{
		"docker":           func(t *testing.T) trial { return docker(t, nil) },
		"podman":           podman,
		"podman, rootless": rootless,
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t)
			drivertest.RunTests(t, func(t testing.TB) drivertest.Env { return e.contract(t, program) })
		})
	}
}

// outpost builds the program of outposts.
func outpost(t *testing.T) moby.Program {
	t.Helper()
	if err := built.Add("cmd/litterbox-outpost"); err != nil {
		t.Fatal(err)
	}
	file := built.Path("litterbox-outpost")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return moby.Program{ID: hex.EncodeToString(sum[:]), Size: int64(len(content)), Open: func() (io.ReadCloser, error) { return os.Open(file) }}
}

// imaged is a driver whose sandboxes all have one image, as the engine package
// gives them one.
type imaged struct {
	*container.Driver
	base driver.Base
}

// Acquire implements driver.Driver.
func (d imaged) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	base := d.base
	spec.Base = &base
	return d.Driver.Acquire(ctx, spec)
}

// contract returns what the driver of this engine brings to the contract. Each
// check has a state directory, and so a container, of its own.
func (e trial) contract(t testing.TB, program moby.Program) drivertest.Env {
	t.Helper()
	dir := engine.Dir(t) // its name has no comma, which ends a filter of Podman
	image, err := e.Engine.Run("image", "inspect", "--format", "{{.Id}}", engine.Shell)
	if err != nil {
		t.Fatal(err)
	}
	key, value, _ := strings.Cut(e.Env(), "=")
	get := func(name string) string { return map[string]string{key: value}[name] }
	t.Cleanup(func() {
		for _, what := range [][]string{{"ps", "--all"}, {"volume", "ls"}} {
			found, err := e.Engine.Run(append(what, "--quiet", "--filter", "label="+container.LabelState+"="+dir)...)
			if err != nil {
				t.Error(err)
			}
			for _, one := range strings.Fields(found) {
				remove := []string{"rm", "--force", one}
				if what[0] == "volume" {
					remove = []string{"volume", "rm", one}
				}
				if _, err := e.Engine.Run(remove...); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return drivertest.Env{
		Dir: dir,
		Driver: func() driver.Driver {
			linked := &moby.Engine{Program: func(string) (moby.Program, error) { return program, nil }}
			d := container.New(container.Kind(e.Driver), linked, container.Environment{Get: get})
			return imaged{d, driver.Base{Image: strings.TrimSpace(image), Engine: value, Shown: engine.Shell}}
		},
		Kill: func(_ context.Context, lease driver.Lease) error {
			pid, err := guestOf(lease)
			if err != nil {
				return err
			}
			_, err = e.inside(dir, killed, pid)
			return err
		},
		Deafen: func(_ context.Context, lease driver.Lease, deaf bool) error {
			at := path.Join("/.litterbox-machine/state/sandboxes", lease.SandboxID)
			from, to := path.Join(at, "guest.sock"), path.Join(at, "moved.sock")
			if !deaf {
				from, to = to, from
			}
			_, err := e.inside(dir, `busybox mv "$1" "$2"`, from, to)
			return err
		},
		Places: func() ([]string, error) {
			found, err := e.inside(dir, places)
			return strings.Fields(found), err
		},
	}
}

// guestOf returns the process that the machine's driver has made, by the machine's
// number.
func guestOf(lease driver.Lease) (pid string, err error) {
	var handle struct {
		Guest sandbox.Process `json:"guest"`
	}
	if err := json.Unmarshal(lease.Handle, &handle); err != nil || handle.Guest.PID <= 1 {
		return "", fault.New(fault.Internal, "cannot find the guest in %s: %v", lease.Handle, err)
	}
	return strconv.Itoa(handle.Guest.PID), nil
}

// killed kills a process and waits for its end.
const killed = `kill -9 "$1" && while grep -qs '^State:.[^ZX]' "/proc/$1/status"; do sleep 0.1; done`

// places lists the processes that are places or parts of one: all processes of our
// program except outposts.
const places = `for dir in /proc/[0-9]*; do
	case $(busybox tr '\0' ' ' <"$dir/cmdline" 2>/dev/null) in
	'litterbox-guest outpost'*) ;;
	*/litterbox-guest' outpost'*) ;;
	litterbox-guest*) echo "${dir##*/}" ;;
	esac
done`

// inside runs a script in the container of a state directory. If none runs, there
// is nothing.
func (e trial) inside(state, script string, args ...string) (string, error) {
	name, err := e.Engine.Run("ps", "--quiet", "--filter", "label="+container.LabelState+"="+state)
	if name = strings.TrimSpace(name); err != nil || name == "" {
		return "", err
	}
	return e.Engine.Run(append([]string{"exec", name, "sh", "-c", script, filepath.Base(state)}, args...)...)
}
