//go:build !embedguest

package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt/rpc"
)

// hypervisor speaks to libvirt. The library is linked here and left out of the
// program that users type, which asks this one.
func hypervisor() libvirt.Hypervisor {
	self := caller.ThisProcess()
	base := self.Get("XDG_RUNTIME_DIR")
	if base == "" {
		base = filepath.Join(self.Home, ".cache")
	}
	return &rpc.Pool{Session: filepath.Join(base, "libvirt")}
}

// answerHypervisor carries out one request from standard input.
func answerHypervisor() int {
	var q libvirt.Request
	if err := json.NewDecoder(os.Stdin).Decode(&q); err != nil {
		return 1
	}
	answer, err := hypervisor().Do(context.Background(), q)
	if err := json.NewEncoder(os.Stdout).Encode(libvirt.Replied(answer, err)); err != nil {
		return 1
	}
	return 0
}
