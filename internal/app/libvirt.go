package app

import (
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/machineimage"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// Drivers returns the drivers whose sandboxes the full program keeps.
func Drivers() []driver.Entry {
	return append(engines(),
		driver.Entry{Name: libvirt.Name, Keeper: driver.ProgramFull, Far: true, Shared: libvirt.SharedName, Make: func() driver.Driver { return libvirt.New(domains()) }},
		driver.Entry{Name: libvirt.SharedName, Keeper: driver.ProgramFull, Far: true, Make: func() driver.Driver { return libvirt.NewShared(domains()) }},
	)
}

// domains says how domains of libvirt are made here.
func domains() libvirt.Options {
	self := caller.ThisProcess()
	return libvirt.Options{
		Hypervisor: hypervisor(), URI: self.Get("LIBVIRT_DEFAULT_URI"), Emulated: self.Get("LITTERBOX_VM_EMULATED") != "", Dir: systemDir(self),
		Image: func() (string, error) {
			root, err := store.DefaultRoot(&self)
			if err != nil {
				return "", err
			}
			_, path, err := machineimage.Open(imageDir(self, root))
			return path, err
		},
		WithDisk: machineimage.WithDisk, DiskOf: machineimage.DiskOf,
	}
}

// systemDir is the directory for the files of root's machines: the QEMU of the
// system's libvirt runs as another user and must be able to read them.
func systemDir(self caller.Caller) string {
	if dir := self.Get("LITTERBOX_VM_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	return "/var/lib/litterbox"
}

// imageDir is the directory for images of virtual machines.
func imageDir(self caller.Caller, root string) string {
	if os.Geteuid() == 0 {
		return filepath.Join(systemDir(self), "images")
	}
	return filepath.Join(root, "images", "vm")
}

// hypervisorProgram is argv[0] of the full program that asks libvirt on behalf
// of another one. It is never typed.
const hypervisorProgram = "litterbox-libvirt"
