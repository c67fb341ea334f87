// Package app is the composition root: the only place, with its child, that
// names concrete drivers. It puts store, drivers, engine and command line
// together and takes no decision itself.
package app

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/app/child"
	"github.com/litterbox-sandbox/litterbox/internal/app/inside"
	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/landlock"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/keeper/launch"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
	"github.com/litterbox-sandbox/litterbox/internal/redteam/probe"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// Main runs the command line and returns its exit code.
func Main(args []string, version string) int {
	if probe.Is(args) {
		return probe.Main(args)
	}
	if isBackground(args) {
		return background(args)
	}
	if isRunner(args) {
		return runner()
	}
	program := cli.Program{Version: version, Build: build, Serve: serveAgents(version)}
	return cli.Main(context.Background(), program, args[1:])
}

func build(progress engine.Progress) (*engine.Engine, error) {
	self := caller.ThisProcess()
	root, err := store.DefaultRoot(&self)
	if err != nil {
		return nil, err
	}
	records, err := store.Open(root)
	if err != nil {
		return nil, err
	}
	// To try on any machine what happens where no overlay can be mounted, or no
	// user namespace made.
	embedded := namespace.Driver{Copy: self.Get("LITTERBOX_WORKSPACE") == "copy", Degraded: self.Get("LITTERBOX_TIER") == "degraded"}
	entries := child.Drivers()
	for i := range entries {
		if entries[i].Name == namespace.Name {
			entries[i].Make = func() driver.Driver { return embedded }
		}
	}
	drivers := driver.NewSet(entries...)
	return engine.New(engine.Options{
		Store:    records,
		Drivers:  drivers,
		Degraded: landlock.Name,
		Full:     embedded.Try,
		Keepers: launch.Processes{
			Program: func(name string) (*os.File, error) { return keeperProgram(drivers.Keeper(name), records.Root) }, Name: inside.Program,
			Guest: func() (*os.File, error) { return payload.OpenGuest(records.Root, runtime.GOARCH) }, // places of this machine
		},
		Probe:    func(stateDir string) []engine.Check { return checks(embedded.Probe(stateDir)) },
		Later:    later,
		Runner:   startRunner,
		Progress: progress,
		Note:     func(note string) { fmt.Fprintln(os.Stderr, "note: "+note) },
	}), nil
}

func checks(findings []namespace.Finding) []engine.Check {
	all := make([]engine.Check, len(findings))
	for i, finding := range findings {
		all[i] = engine.Check(finding)
	}
	return all
}
