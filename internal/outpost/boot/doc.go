// Package boot is what an outpost does as the first process of a machine that was
// made for places: a kernel, this program as its init, a read-only disk with the
// userland of places and a disk for their writes. There is no other program and no
// network. Hosts dial the machine over ports (package outpost), each of which
// carries one link at a time.
//
// The first process loads modules, mounts, and reaps. A second one answers, and is
// started again when it ends: places do not end with it. Start reading at [Main].
package boot

// The disks, by their serial numbers.
const (
	RootDisk  = "litterbox-root"  // the userland: squashfs, or a disk of the user's that has a root
	StateDisk = "litterbox-state" // ext4: layers, and the writes of places
)

// PortPrefix begins the names of ports; a number follows.
const PortPrefix = "litterbox."

// State is where the state disk is mounted. The userland has that directory.
const State = "/var/lib/litterbox"

// Modules is the directory of kernel modules in the initial file system, and Order
// the file there that names them, in the order of loading.
const (
	Modules = "/modules"
	Order   = "order"
)

// OrderOf is Order for the modules of a file system that only disks of the user's have.
func OrderOf(filesystem string) string { return Order + "-" + filesystem }

// IdleOption on the kernel's command line says after how many seconds without a
// link or a place the machine switches itself off; without it, never.
const IdleOption = "litterbox.idle="
