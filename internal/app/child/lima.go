package child

import (
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima"
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
