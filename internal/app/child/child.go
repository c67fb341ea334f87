// Package child is the composition root of the keeper's program: the keeper of
// one sandbox, on the host, and the drivers of places on this machine. The large
// program carries it, and serves as it if it was not embedded.
//
// It takes no part in the decisions of commands; see package app for those.
// What runs inside a place is package inside.
package child

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/app/inside"
	"github.com/litterbox-sandbox/litterbox/internal/app/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/landlock"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/keeper/launch"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/rest"
)

// IsChild reports whether these arguments are a child's.
func IsChild(args []string) bool { return inside.Is(args) || outpost.Is(args) }

// Main runs a child and returns its exit code. A keeper knows the drivers of linked
// besides its own.
func Main(args []string, linked ...driver.Entry) int {
	if !inside.Is(args) || len(args) != 2 || args[1] != launch.Verb {
		return outpost.Main(args)
	}
	if err := keep(linked); err != nil {
		// The keeper's standard error is its log in the sandbox's directory.
		fmt.Fprintln(os.Stderr, "keeper:", err)
		return 1
	}
	return 0
}

// collectAt is how many percent a keeper's heap grows before its garbage is
// collected: it lives long and has little to do.
const collectAt = 30

// Drivers returns the drivers whose sandboxes this program keeps. One that needs a
// client library has its entry in package app, with driver.ProgramFull. root is
// the state directory, which records the human's machines.
func Drivers(root string) []driver.Entry {
	return []driver.Entry{
		{Name: namespace.Name, Make: func() driver.Driver { return namespace.Driver{} }, Default: runtime.GOOS == "linux"},
		{Name: landlock.Name, Make: func() driver.Driver { return landlock.Driver{} }},
		{Name: lima.Name, Make: func() driver.Driver { return lima.New(limaOptions()) }, Far: true, Default: runtime.GOOS != "linux", Live: lima.EnvName},
		{Name: lima.OwnName, Make: func() driver.Driver { return lima.NewOwn(limaOptions()) }, Far: true, Live: lima.EnvName},
		{Name: lima.EnvName, Make: func() driver.Driver { return lima.NewEnv(limaOptions()) }, Far: true},
		{Name: remote.ChildName, Make: func() driver.Driver { return remote.NewChild() }, Hidden: true, Live: remote.ChildEnvName},
		{Name: remote.ChildEnvName, Make: func() driver.Driver { return remote.NewChildEnv() }, Hidden: true},
		{Name: driver.Machines, One: func(name string) driver.Driver { return machineDriver(root, name) }, Far: true},
	}
}

func keep(linked []driver.Entry) error {
	var order keeper.Order
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return nil // our starter has changed its mind
	}
	if err := json.Unmarshal(data, &order); err != nil {
		return err
	}
	// TERM ends the keeper, not the sandbox: the next command attaches again.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	// Values of secrets are in its memory while requests are sent. The degraded
	// tier has no secrets.
	if order.Driver != landlock.Name {
		core, err := process.KeepOutOfDumps()
		if err != nil {
			return err
		}
		order.Spec.Core = &core
	}
	if order.Guest { // it stays open as long as the keeper lives
		syscall.CloseOnExec(launch.GuestDescriptor)
		order.Spec.Program = process.DescriptorPath(launch.GuestDescriptor)
	}
	return keeper.Run(caller.For(ctx, caller.ThisProcess()), driver.NewSet(append(Drivers(order.StoreRoot), linked...)...), order, os.Stdout, rest.New(collectAt))
}
