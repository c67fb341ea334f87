package program

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Processes returns the keeper and the guest of a sandbox from its lease on
// disk: a command could repair what a test has just broken. It fails with
// fs.ErrNotExist if there is not exactly one lease for that name.
func (h *Host) Processes(name string) (keeper, guest sandbox.Process, err error) {
	data, err := h.lease(name)
	if err != nil {
		return keeper, guest, err
	}
	var lease struct {
		Handle []byte `json:"handle"`
		Holder string `json:"holder"`
	}
	place := struct {
		Guest  *sandbox.Process `json:"guest"`
		Warden sandbox.Process  `json:"warden"` // in the degraded tier the guest ends with it
	}{Guest: &guest}
	err = json.Unmarshal(data, &lease)
	if err == nil {
		err = json.Unmarshal([]byte(lease.Holder), &keeper)
	}
	if err == nil {
		err = json.Unmarshal(lease.Handle, &place)
	}
	if guest.PID == 0 {
		guest = place.Warden
	}
	if err != nil {
		return keeper, guest, fmt.Errorf("the lease of %s says %s: %w", name, data, err)
	}
	return keeper, guest, nil
}

// lease returns the lease of a sandbox, as it is on disk.
func (h *Host) lease(name string) ([]byte, error) {
	found, err := filepath.Glob(filepath.Join(h.State, "litterbox/sandboxes", name+"-????????", "lease.json"))
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("the leases of %s are %q: %w", name, found, fs.ErrNotExist)
	}
	return os.ReadFile(found[0])
}

// Network returns how connections leave the place of a sandbox, by its lease.
func (h *Host) Network(name string) sandbox.Network {
	h.Helper()
	data, err := h.lease(name)
	var lease struct {
		Traits sandbox.Traits `json:"traits"`
	}
	if err == nil {
		err = json.Unmarshal(data, &lease)
	}
	if err != nil {
		h.Fatalf("cannot read the lease of %s: %v", name, err)
	}
	return lease.Traits.Network
}

// MustProcesses is Processes for a sandbox that has both; the test fails if
// one is missing.
func (h *Host) MustProcesses(name string) (keeper, guest int) {
	h.Helper()
	k, g, err := h.Processes(name)
	if err != nil || k.PID <= 1 || g.PID <= 1 {
		h.Fatalf("sandbox %s is kept by %+v, its guest is %+v: %v", name, k, g, err)
	}
	return k.PID, g.PID
}
