package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Of an agent that works in a sandbox, the session that holds it and the run each
// have a row of their own.
func TestStatusOfAgent(t *testing.T) {
	e := &fake{status: func(_, name string) (engine.Status, error) {
		return engine.Status{
			Info:   engine.Info{Name: name, State: sandbox.Running, Agent: &sandbox.Agent{Client: "Gemini CLI", Holder: sandbox.Process{PID: 42}, AcquiredAt: now, Heartbeat: now}},
			Cycles: []sandbox.Cycle{{Version: 1, ID: 3, Kind: "agent", Command: "gemini: Fix it", State: sandbox.Executing, StartedAt: now}},
		}, nil
	}}
	rows := lb(t, e, "", "status", "fix").Stdout
	if len(regexp.MustCompile("(?m)^agent ").FindAllString(rows, -1)) != 1 || !strings.Contains(rows, "\nheld by     Gemini CLI (process 42") {
		t.Errorf("two rows have one name:\n%s", rows)
	}
}

// A signature that waits is shown with the command that answers it.
func TestStatusOfSignature(t *testing.T) {
	e := &fake{status: func(_, name string) (engine.Status, error) {
		return engine.Status{Info: engine.Info{Name: name, State: sandbox.Running}, Signatures: []engine.Signature{{ID: 3, Purpose: "sign a commit or a tag of git"}}}, nil
	}}
	if rows := lb(t, e, "", "status", "fix").Stdout; !regexp.MustCompile(`(?m)^waits +sign a commit or a tag of git: litterbox approve fix 3$`).MatchString(rows) {
		t.Errorf("the signature is not shown:\n%s", rows)
	}
}
