package child

import (
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// limaOptions returns the account's options: everyone who works as it shares
// one virtual machine.
func limaOptions() lima.Options {
	self := caller.ThisProcess()
	config := self.Get("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = filepath.Join(self.Home, ".config")
	}
	return lima.Options{
		Env:      caller.Lasting(os.Environ()),
		Override: filepath.Join(config, "litterbox", "lima.yaml"),
		Outpost:  outpostOf,
	}
}

// LimaVM returns the virtual machine of a state directory.
func LimaVM(root string) lima.VM { return lima.VM{Machine: lima.At(root, limaOptions())} }

// LimaProbe looks for Lima, in whose virtual machine sandboxes are where this machine
// is no Linux. It starts nothing.
func LimaProbe() namespace.Finding {
	path, err := limactl.Client{Env: limaOptions().Env}.Path()
	if err != nil {
		return namespace.Finding{Name: "lima", Needed: true, Found: err.Error(), Mend: fault.HintOf(err)}
	}
	return namespace.Finding{Name: "lima", Needed: true, OK: true, Found: path}
}
