// Package inside is the composition root of the programs in a place: the stages
// that build it, the guest that lives in it, the program that its git asks what
// changed, and the one that asks the keeper to install packages. The guest's program is this and nothing else: no HTTP, no TLS,
// no git, nothing of the keeper's (a test of internal/arch holds it to that).
package inside

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
	"github.com/litterbox-sandbox/litterbox/internal/installer"
)

// Program is argv[0] of every child, which tells a program to be one. It is
// never typed.
const Program = "litterbox-guest"

// Is reports whether these arguments are a child's.
func Is(args []string) bool {
	return isMonitor(args) || installer.Is(args) || len(args) == 2 && filepath.Base(args[0]) == Program
}

// isMonitor reports whether git inside a sandbox asks what changed.
func isMonitor(args []string) bool {
	return len(args) > 0 && filepath.Base(args[0]) == fsmonitor.Name
}

// Main runs a child and returns its exit code.
func Main(args []string) int {
	if isMonitor(args) {
		return fsmonitor.Main(args, os.Stdout)
	}
	if installer.Is(args) {
		return installer.Main(args)
	}
	if !Is(args) {
		fmt.Fprintln(os.Stderr, "litterbox-guest: litterbox starts this program by itself")
		return 125
	}
	return stageMain(args[1])
}
