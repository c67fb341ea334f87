package hosts_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/drivertest"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// What package driver promises holds for places on a host that ssh reaches.
func TestContract(t *testing.T) {
	if os.Getenv("LITTERBOX_TEST_MACHINES") == "" {
		t.Skip("LITTERBOX_TEST_MACHINES is not set: make test-machines runs it")
	}
	if os.Getuid() != 0 {
		t.Skip("places are counted in a host with processes of its own, which needs root")
	}
	h := open(t)
	if err := built.Add("cmd/litterbox-outpost"); err != nil {
		t.Fatal(err)
	}
	file := built.Path("litterbox-outpost")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	program := remote.Program{ID: hex.EncodeToString(sum[:]), Size: int64(len(content)), Open: func() (io.ReadCloser, error) { return os.Open(file) }}
	drivertest.RunTests(t, func(t testing.TB) drivertest.Env { return h.contract(t, program) })
}

// contract returns what the driver of this host brings to the contract. Each check
// has a directory of its own there.
func (h *hosts) contract(t testing.TB, program remote.Program) drivertest.Env {
	t.Helper()
	wanted, err := machine.Parse("far", h.address(), h.identity)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 6)
	_, _ = rand.Read(id) // never fails, crypto/rand
	wanted.ID = hex.EncodeToString(id)
	host := func(m machine.Machine) *remote.SSH {
		return &remote.SSH{Machine: m, Env: h.Env, Program: func(string, string) (remote.Program, error) { return program, nil }}
	}
	found, err := host(wanted).Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host(found).Clear(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return drivertest.Env{
		Dir:    t.TempDir(),
		Driver: func() driver.Driver { return remote.NewSSH(driver.OnMachine("far"), host(found)) },
		Kill: func(_ context.Context, lease driver.Lease) error {
			var handle struct {
				Guest sandbox.Process `json:"guest"`
			}
			if err := json.Unmarshal(lease.Handle, &handle); err != nil || handle.Guest.PID <= 1 {
				return fault.New(fault.Internal, "cannot find the guest in %s: %v", lease.Handle, err)
			}
			_, err := h.far.run(`kill -9 "$1" && while grep -qs '^State:.[^ZX]' "/proc/$1/status"; do sleep 0.1; done`, strconv.Itoa(handle.Guest.PID))
			return err
		},
		Deafen: func(_ context.Context, lease driver.Lease, deaf bool) error {
			at := filepath.Join(found.Dir, "sandboxes", lease.SandboxID)
			from, to := filepath.Join(at, "guest.sock"), filepath.Join(at, "moved.sock")
			if !deaf {
				from, to = to, from
			}
			_, err := h.far.run(`mv "$1" "$2"`, from, to)
			return err
		},
		Places: func() ([]string, error) {
			out, err := h.far.run(`for dir in /proc/[0-9]*; do
	case $(tr '\0' ' ' <"$dir/cmdline" 2>/dev/null) in
	*'litterbox-guest outpost'*) ;;
	litterbox-guest*) echo "${dir##*/}" ;;
	esac
done`)
			return strings.Fields(out), err
		},
	}
}

// run runs a script on the host.
func (f *far) run(script string, args ...string) (string, error) {
	argv := slices.Concat(f.enter, []string{"/bin/sh", "-c", script, "sh"}, args)
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		err = fault.New(fault.Internal, "cannot run %q on the host: %v: %s", script, err, out)
	}
	return string(out), err
}
