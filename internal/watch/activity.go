package watch

import (
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Version is the version of [Activity] as JSON. Fields and kinds are
// added, never renamed.
const Version = 1

// Activity is one thing that agents or humans do, or that happens to their
// sandboxes. Secrets in it are redacted as they are in the audit log.
type Activity struct {
	Version    int       `json:"version"`
	Time       time.Time `json:"time"`
	Kind       Kind      `json:"kind"`
	Repository string    `json:"repository,omitempty"`
	Sandbox    string    `json:"sandbox,omitempty"`
	SandboxID  string    `json:"sandbox_id,omitempty"`

	Call      uint64         `json:"call,omitempty"` // number of the audit log's entry
	Action    string         `json:"action,omitempty"`
	Who       *audit.Who     `json:"who,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
	Outcome   string         `json:"outcome,omitempty"` // "ok" or the kind of the error
	Problem   string         `json:"problem,omitempty"`
	ExitCode  *int           `json:"exit_code,omitempty"`
	Duration  time.Duration  `json:"duration_ns,omitempty"`

	Cycle  int    `json:"cycle,omitempty"`
	Stream string `json:"stream,omitempty"` // "stdout" or "stderr"
	Text   string `json:"text,omitempty"`   // a line of output, a commit's message
	Lines  int64  `json:"lines,omitempty"`  // that were lost; 0: unknown
	Commit string `json:"commit,omitempty"`

	State sandbox.State     `json:"state,omitempty"`
	Event sandbox.EventType `json:"event,omitempty"`
	Data  map[string]string `json:"data,omitempty"` // of the event
}

// Kind says what an activity is.
type Kind string

// The kinds of activities.
const (
	Call    Kind = "call"
	Result  Kind = "result"
	Read    Kind = "read"
	Output  Kind = "output"
	Lost    Kind = "lost"
	Commit  Kind = "commit"
	State   Kind = "state"
	Network Kind = "network"
	Limit   Kind = "limit"
)

// Kinds lists them with their meaning and the fields that they have besides the
// common ones.
func Kinds() []struct {
	Kind    Kind
	Meaning string
	Fields  string
} {
	return []struct {
		Kind    Kind
		Meaning string
		Fields  string
	}{
		{Call, "a request arrived and begins", "call, action, who, arguments"},
		{Result, "the result of a call", "call, action, who, outcome, problem, exit_code, commit, duration_ns"},
		{Read, "a call that changed nothing, when it was over", "call, action, who, arguments, outcome, problem, duration_ns"},
		{Output, "a command printed a line", "cycle, stream, text"},
		{Lost, "lines of output were not shown: this watcher was slower than the command, or without a number, the sandbox stopped under it", "lines"},
		{Commit, "a commit was made of what a run changed", "cycle, commit, text, event, data"},
		{State, "a sandbox changed its state; without an event, the state that the watcher found", "state, who, event, data"},
		{Network, "a destination was refused, or the policy was changed", "event, data"},
		{Limit, "a limit was reached, or limits were changed", "event, data"},
	}
}
