//go:build linux

package seccomp

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Arch is one architecture's numbering of system calls.
//
// To add an architecture: 1. its line in gen.go, 2. go generate, 3. a function
// here and its case in Native, 4. read through the new golden listing.
//
//go:generate go run gen.go
type Arch struct {
	Name  string
	Audit uint32   // AUDIT_ARCH_*, the kernel's name for it in seccomp_data
	Calls []string // names by number; "" if there is none
	// Alien is the bit in a number that selects another ABI under the same
	// AUDIT_ARCH; 0 if there is none. Calls with it are killed: x32 would pass
	// every comparison with an amd64 number.
	Alien uint32
}

// AMD64 is x86-64.
func AMD64() Arch {
	// __X32_SYSCALL_BIT of asm/unistd.h.
	return Arch{Name: "amd64", Audit: unix.AUDIT_ARCH_X86_64, Calls: callsX8664(), Alien: 1 << 30}
}

// ARM64 is AArch64, little-endian.
func ARM64() Arch {
	return Arch{Name: "arm64", Audit: unix.AUDIT_ARCH_AARCH64, Calls: callsAArch64()}
}

// Native is the architecture this program runs on, or fault.Unsupported.
func Native() (Arch, error) {
	switch runtime.GOARCH {
	case "amd64":
		return AMD64(), nil
	case "arm64":
		return ARM64(), nil
	}
	return Arch{}, fault.New(fault.Unsupported, "cannot filter system calls on %s: only amd64 and arm64 have a table", runtime.GOARCH)
}
