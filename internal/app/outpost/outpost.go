// Package outpost is the composition root of an outpost's program: it answers on
// its standard input and output, makes places with the namespace driver, and is
// the program of their stages and guests if the host brings no other. It contains
// nothing of the engine, no HTTP and no TLS (a test of internal/arch holds it to
// that).
package outpost

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/app/inside"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/outpost/boot"
	"github.com/litterbox-sandbox/litterbox/internal/outpost/station"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// portsVerb is the argument of the process that answers on the ports of a machine
// whose first process this program is.
const portsVerb = "outpost-ports"

// Is reports whether these arguments are an outpost's.
func Is(args []string) bool {
	return boot.Is(args) || len(args) == 2 && filepath.Base(args[0]) == inside.Program && (args[1] == outpost.Verb || args[1] == portsVerb || args[1] == outpost.HoldVerb)
}

// Main runs an outpost whose directory is the working directory, or one of its
// children, and returns the exit code.
func Main(args []string) int {
	if !Is(args) {
		return inside.Main(args)
	}
	if boot.Is(args) {
		return boot.Main([]string{inside.Program, portsVerb})
	}
	if args[1] == outpost.HoldVerb {
		return hold()
	}
	if err := answer(args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "outpost:", err)
		return 1
	}
	return 0
}

func answer(verb string) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return err
	}
	s := &station.Station{Root: root, Driver: namespace.Driver{}, Boot: self.Boot, Durable: verb == portsVerb}
	if verb == portsVerb {
		os.Exit(boot.Answer(s, s.Runs))
	}
	// Each link ends by the host leaving.
	_ = s.Serve(stdio{})
	return nil
}

// stdio is the stream to the host.
type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }
