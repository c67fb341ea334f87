// Package app is the composition root: the only place, with its child, that
// names concrete drivers. It puts store, drivers, engine and command line
// together and makes no decisions itself.
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
	"github.com/litterbox-sandbox/litterbox/internal/machine"
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
	if len(args) == 1 && args[0] == engineProgram {
		return answerEngine()
	}
	if unpacks(args) {
		return unpack(args)
	}
	if isRunner(args) {
		return runner()
	}
	if len(args) == 1 && args[0] == hypervisorProgram {
		return answerHypervisor()
	}
	program := cli.Program{Version: version, Build: build, Serve: serveAgents(version), Door: serveClient, Image: buildImage}
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
	// To test on any machine what happens if no overlay can be mounted, or no user
	// namespace made.
	embedded := namespace.Driver{Copy: self.Get("LITTERBOX_WORKSPACE") == "copy", Degraded: self.Get("LITTERBOX_TIER") == "degraded"}
	entries := child.Drivers(records.Root)
	for i := range entries {
		if entries[i].Name == namespace.Name {
			entries[i].Make = func() driver.Driver { return embedded }
		}
	}
	program, err := os.Executable()
	if err != nil {
		program = "" // no keeper starts it then
	}
	drivers := driver.NewSet(append(entries, Drivers()...)...)
	return engine.New(engine.Options{
		Store:    records,
		Drivers:  drivers,
		Degraded: landlock.Name,
		VM:       child.LimaVM(records.Root),
		Machines: child.Machines{Store: machine.In(records.Root)},
		Full:     embedded.Try,
		Keepers: launch.Processes{
			Program: func(name string) (*os.File, error) { return keeperProgram(drivers.Keeper(name), records.Root) }, Name: inside.Program,
			Guest: func() (*os.File, error) { return payload.OpenGuest(records.Root, runtime.GOARCH) }, // places of this machine
			Env: func(name string) ([]string, error) {
				if !drivers.Far(name) {
					return nil, nil
				}
				found, err := payload.Outposts(records.Root)
				return append(found, child.Lent(self.Get)...), err
			},
		},
		Probe:    func(stateDir string) []engine.Check { return checks(findings(embedded, stateDir)) },
		Program:  program,
		Later:    later,
		Runner:   startRunner,
		Progress: progress,
		Note:     func(note string) { fmt.Fprintln(os.Stderr, "note: "+note) },
	}), nil
}

// findings is what the drivers of new sandboxes find on this machine.
func findings(embedded namespace.Driver, stateDir string) []namespace.Finding {
	if runtime.GOOS != "linux" {
		return []namespace.Finding{child.LimaProbe()}
	}
	return embedded.Probe(stateDir)
}

func checks(findings []namespace.Finding) []engine.Check {
	all := make([]engine.Check, len(findings))
	for i, finding := range findings {
		all[i] = engine.Check(finding)
	}
	return all
}
