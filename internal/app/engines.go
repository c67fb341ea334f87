package app

import (
	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
)

// engines returns the drivers of containers. If this program links no client
// library, the full one is asked.
func engines() []driver.Entry {
	var entries []driver.Entry
	engine := engineOfContainers()
	for _, kind := range []container.Kind{container.Docker, container.Podman} {
		entries = append(entries, driver.Entry{Name: string(kind), Keeper: driver.ProgramFull, Far: true, Make: func() driver.Driver {
			self := caller.ThisProcess()
			return container.New(kind, engine, container.Environment{Get: self.Get, Home: self.Home})
		}})
	}
	return entries
}

// engineProgram is argv[0] of a full program that carries out one order for a
// program that links no client library.
const engineProgram = "litterbox-engine"
