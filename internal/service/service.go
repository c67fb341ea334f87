// Package service is the pure part of supervising services: what a service is,
// the states it passes through, when a crashed one starts again, and in which
// order they start and stop.
//
// It starts no process and reads no clock: package guest does, and asks
// [Machine] what to do. Start reading at [Spec] and [Machine].
package service

import (
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Restart says when a service that has ended by itself starts again.
type Restart string

// The restart policies.
const (
	Always    Restart = "always"     // unless set
	OnFailure Restart = "on-failure" // not after exit code 0
	Never     Restart = "never"
)

// Spec is one service, as the configuration has it. It crosses the wire.
type Spec struct {
	Name      string            `json:"name"`
	Command   []string          `json:"command"`
	Env       map[string]string `json:"env,omitempty"`
	Signals   Signals           `json:"signals,omitzero"`
	Ready     Ready             `json:"ready,omitzero"`
	Restart   Restart           `json:"restart,omitempty"` // empty means Always
	Needs     []string          `json:"needs,omitempty"`   // services that must run before
	Grace     time.Duration     `json:"grace_ns,omitempty"`
	Autostart bool              `json:"autostart"` // wanted in a new sandbox
}

// Signals are names without SIG. An empty Restart means: stop, then start.
type Signals struct {
	Stop    string `json:"stop,omitempty"` // empty means TERM
	Restart string `json:"restart,omitempty"`
}

// Ready says how to tell that a service is ready; at most one of Port, File and Command
// is set, and without any it is ready once its process has run for a moment.
type Ready struct {
	Port    int           `json:"port,omitempty"`    // a process listens there
	Named   string        `json:"named,omitempty"`   // likewise: a name of container.ports
	File    string        `json:"file,omitempty"`    // exists, and is not older than the process
	Command []string      `json:"command,omitempty"` // exits with 0
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

// Told reports whether a service says in some way when it is ready.
func (r Ready) Told() bool { return r.Port != 0 || r.Named != "" || r.File != "" || len(r.Command) > 0 }

// Defaults of a Spec.
const (
	DefaultGrace   = 5 * time.Second
	DefaultTimeout = time.Minute
	// Survival is how long a process must run to count as ready where nothing
	// else tells.
	Survival = 250 * time.Millisecond
)

// Checked reports whether readiness is more than a process that runs.
func (r Ready) Checked() bool {
	return r.Port != 0 || r.Named != "" || r.File != "" || len(r.Command) > 0
}

// MaxServices bounds how many services one sandbox has.
const MaxServices = 64

// ValidName reports whether a name can be used in files, host names and listings:
// lower-case letters, digits and inner dashes or underscores, 32 at most.
func ValidName(name string) bool {
	if name == "" || len(name) > 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return false
	}
	return !strings.ContainsAny(name[:1]+name[len(name)-1:], "-_")
}

// Check finds what makes a set of services impossible: an unmet need, or needs
// that form a circle.
func Check(specs []Spec) error {
	if len(specs) > MaxServices {
		return fault.New(fault.Invalid, "cannot run %d services: the limit is %d", len(specs), MaxServices)
	}
	known := map[string]bool{}
	for _, s := range specs {
		known[s.Name] = true
	}
	for _, s := range specs {
		for _, need := range s.Needs {
			if !known[need] {
				return fault.New(fault.Invalid, "cannot run service %q: it needs %q, which is not a service", s.Name, need)
			}
		}
	}
	_, err := Order(specs)
	return err
}

// PortVariable names the environment variable that holds the number of a named
// port inside; with HOST_ in front of it, the one on the host.
func PortVariable(name string) string {
	return "PORT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
