package engines_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/test/engine"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// The suites for sandboxes of this machine run on those in containers:
// attacks, the posture of a process, and random operations.
func TestSuites(t *testing.T) {
	whole(t)
	e := docker(t, nil)
	e.Import(built.Path("probe"))
	program.Suites(t, e.elsewhere(), "attack", "posture", "soak")
}

// elsewhere returns the engine, for suites that know none.
func (e trial) elsewhere() program.Elsewhere {
	client := e.Command[0] + " " + e.Command[1] + " " + e.Command[2]
	return program.Elsewhere{
		Name: e.Driver, Env: []string{e.Env()},
		Settings: "driver = \"" + e.Driver + "\"\n[container]\nbase-image = \"" + engine.Shell + "\"\n",
		Enter:    client + ` exec -i $(` + client + ` ps --quiet --filter "label=` + container.LabelState + `=$STATE")`,
	}
}
