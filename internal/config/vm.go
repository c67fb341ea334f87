package config

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// VM is the section about virtual machines. Unset fields are the driver's defaults.
type VM struct {
	// Isolation is IsolationVM where each sandbox has a virtual machine of its own.
	Isolation string

	CPUs   int
	Memory string // with a unit, as written in the file
	Bytes  int64  // that is Memory
	Disk   string
	Type   string // VMQEMU or VMVZ
	Image  string
	Share  bool // sandboxes of a driver that makes a machine for each share one
	// IdleStop is how long it runs without a sandbox before it stops; 0 is the
	// default, negative never.
	IdleStop time.Duration
}

// The values of vm.vmType.
const (
	VMQEMU = "qemu"
	VMVZ   = "vz"
)

// The values of vm.isolation.
const (
	IsolationShared = "shared"
	IsolationVM     = "vm"
)

// vmKeys are the keys of [vm]. One machine serves all repositories, so none of them
// may set these.
func vmKeys() []key {
	own := func(name, kind, meaning string, shape shape, read func(*Config, value) []problem) key {
		return key{
			Key:   Key{Name: "vm." + name, Type: kind, Own: true, Meaning: meaning},
			shape: shape,
			read:  read,
			merge: func(*Config, Config) {}, // never from a repository
		}
	}
	const recreated = " It takes effect when the machine is made: `litterbox machine recreate`."
	return []key{
		own("isolation", `"shared" or "vm"`, `Whether new sandboxes of the driver lima share one virtual machine, the default, or get one each: "vm" turns lima into the driver lima-vm.`, text, func(c *Config, v value) []problem {
			c.VM.Isolation = v.text
			if v.text != IsolationShared && v.text != IsolationVM {
				return wrong(v, `isolation = "vm"`, "vm.isolation must be \"shared\" or \"vm\", not %q", v.text)
			}
			return nil
		}),
		own("cpus", "number", "Processors of a virtual machine. Unless set, one of the driver lima has 4, and one of libvirt 2, or 4 if it is shared; `litterbox machine start` gives them to one of lima that is stopped, and libvirt's keeps what it was made with.", number, func(c *Config, v value) []problem {
			n, err := strconv.Atoi(v.text)
			if err != nil || n < 1 || n > 1024 {
				return wrong(v, "cpus = 4", "vm.cpus must be a whole number from 1 to 1024, not %s", v.text)
			}
			c.VM.CPUs = n
			return nil
		}),
		own("memory", "string", "Memory of a virtual machine. Unless set, one of the driver lima has \"8GiB\", and one of libvirt \"1GiB\", or \"4GiB\" if it is shared; `litterbox machine start` gives it to one of lima that is stopped, and libvirt's keeps what it was made with.", text, func(c *Config, v value) []problem {
			c.VM.Memory = v.text
			c.VM.Bytes, _ = readSize(v) // vmSize says what is wrong
			return vmSize(v, "memory", 512<<20)
		}),
		own("disk", "string", `How large the disk of the virtual machine may become, "30GiB" unless set.`+recreated, text, func(c *Config, v value) []problem {
			c.VM.Disk = v.text
			return vmSize(v, "disk", 2<<30)
		}),
		own("vmType", `"qemu" or "vz"`, `What runs the virtual machine; unless set Lima chooses: vz (Apple's) on a Mac, else qemu.`+recreated, text, func(c *Config, v value) []problem {
			c.VM.Type = v.text
			if v.text != VMQEMU && v.text != VMVZ {
				return wrong(v, `vmType = "qemu"`, `vm.vmType must be "qemu" or "vz", not %q`, v.text)
			}
			return nil
		}),
		own("image", "string", `The image of a virtual machine. For Lima: a name ("debian-13" unless set, "ubuntu-24.04"), the https URL or the absolute path of a disk image with cloud-init, sudo and an SSH server. For libvirt: the absolute path of any disk image with a Linux system, whose userland new sandboxes see ([virtual-machines.md](virtual-machines.md#a-disk-image-of-your-own)); names have no effect there, and a URL is refused.`+recreated, text, func(c *Config, v value) []problem {
			c.VM.Image = v.text
			name := v.text != "" && strings.Trim(v.text, "abcdefghijklmnopqrstuvwxyz0123456789.-") == "" && v.text[0] != '-' && v.text[0] != '.'
			if name || (strings.HasPrefix(v.text, "https://") || filepath.IsAbs(v.text)) && !strings.ContainsAny(v.text, "\n\r\x00\x1b{}") {
				return nil
			}
			return wrong(v, `image = "debian-13"`, "vm.image must be a name such as \"debian-13\", an https URL or an absolute path, not %q", v.text)
		}),
		own("share", "true or false", "Whether new sandboxes of the driver libvirt share one virtual machine, which is the driver libvirt-shared, instead of having one each ([virtual-machines.md](virtual-machines.md#one-machine-for-many-sandboxes)). Sandboxes that exist stay where they are.", boolean, func(c *Config, v value) []problem {
			c.VM.Share = v.truth
			return nil
		}),
		own("idle-stop", "string", `Shut a virtual machine down when no sandbox has run in it for this long, for example "30m"; "off" leaves it running. Unless set, one of the driver lima is left running, and one of libvirt waits for ten minutes. The next command that needs it starts it.`+recreated, text, func(c *Config, v value) []problem {
			if v.text == "off" {
				c.VM.IdleStop = -1
				return nil
			}
			age, why := readAge(v)
			if why != nil || age < time.Minute || age%time.Second != 0 {
				return wrong(v, `idle-stop = "30m"`, "vm.idle-stop must be a duration from \"1m\" on, or \"off\", not %q", v.text)
			}
			c.VM.IdleStop = age
			return nil
		}),
	}
}

// vmSize wants a size with a unit that Lima knows, and no less than the least that
// works.
func vmSize(v value, name string, least int64) []problem {
	n, why := readSize(v)
	if why == nil && strings.HasSuffix(v.text, "iB") && n >= least {
		return nil
	}
	return wrong(v, name+` = "8GiB"`, "vm.%s must be a size such as \"8GiB\", from %dMiB on, not %q", name, least>>20, v.text)
}
