//go:build embedguest

package app

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// keeperProgram opens the program that keepers run from.
func keeperProgram(which driver.Program, root string) (*os.File, error) {
	if which == driver.ProgramFull {
		return payload.OpenFull(root)
	}
	return payload.OpenKeeper(root)
}

// serveAgents becomes the full program, which reads the same command line.
func serveAgents(string) func(context.Context, cli.ServeRequest) error {
	return func(context.Context, cli.ServeRequest) error {
		self := caller.ThisProcess()
		root, err := store.DefaultRoot(&self)
		if err != nil {
			return err
		}
		records, err := store.Open(root)
		if err != nil {
			return err
		}
		handed, err := payload.Handed(records.Root)
		if err != nil {
			return err
		}
		program, err := payload.OpenFull(records.Root)
		if err != nil {
			return err
		}
		// Closed by the exec itself, after the kernel has opened it once more.
		err = syscall.Exec(process.ExecPath(program), os.Args, append(self.Env, handed...))
		return fault.Wrap(fault.Unavailable, fmt.Errorf("%s: %w", program.Name(), err), "cannot start the full program")
	}
}
