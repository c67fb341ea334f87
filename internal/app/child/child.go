// Package child is the composition root of the keeper's program: the keeper of
// one sandbox, on the host, and the drivers of places on this machine. The large
// program carries it and also is it, where it was not embedded.
//
// It takes part in no decision of a command; see package app for those. What
// runs inside is package inside.
package child

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/app/inside"
	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/landlock"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/keeper/launch"
)

// IsChild reports whether these arguments are a child's.
func IsChild(args []string) bool { return inside.Is(args) }

// Main runs a child and returns its exit code.
func Main(args []string) int {
	if !inside.Is(args) || len(args) != 2 || args[1] != launch.Verb {
		return inside.Main(args)
	}
	if err := keep(); err != nil {
		// The keeper's standard error is its log in the sandbox's directory.
		fmt.Fprintln(os.Stderr, "keeper:", err)
		return 1
	}
	return 0
}

// settledAfter is when a keeper gives memory back. What starting needed is
// garbage then, and the keeper idles for hours; but the client that started it
// has a command to run first.
const settledAfter = 3 * time.Second

// Drivers are those whose sandboxes this program keeps. One that needs a client
// library has its entry in package app, with driver.ProgramFull.
func Drivers() []driver.Entry {
	return []driver.Entry{
		{Name: namespace.Name, Make: func() driver.Driver { return namespace.Driver{} }, Default: true},
		{Name: landlock.Name, Make: func() driver.Driver { return landlock.Driver{} }},
	}
}

func keep() error {
	var order keeper.Order
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return nil // whoever started us has changed its mind
	}
	if err := json.Unmarshal(data, &order); err != nil {
		return err
	}
	// TERM ends the keeper, not the sandbox: the next command attaches again.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	settle := time.AfterFunc(settledAfter, func() {
		debug.SetGCPercent(30)
		debug.FreeOSMemory()
	})
	defer settle.Stop()
	if order.Guest {
		if order.Spec.Program, err = guestProgram(); err != nil {
			return err
		}
	}
	return keeper.Run(caller.For(ctx, caller.ThisProcess()), driver.NewSet(Drivers()...), order, os.Stdout)
}
