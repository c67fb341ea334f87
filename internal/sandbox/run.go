package sandbox

import "time"

// RunState is the state of an agent's run.
type RunState string

// The states of a run; all but the first two are over.
const (
	RunStarting  RunState = "starting"
	RunWorking   RunState = "working"
	RunCompleted RunState = "completed" // its client says so
	RunFailed    RunState = "failed"
	RunStopped   RunState = "stopped"   // it was ended by a human or another process
	RunTimedOut  RunState = "timed_out" // --time was over
	RunLost      RunState = "lost"      // the process that drove it has died
)

// Over reports whether a run in this state has ended.
func (s RunState) Over() bool { return s != RunStarting && s != RunWorking }

// Run is one run of an agent's client in a sandbox. Its record outlives the
// sandbox.
type Run struct {
	Version    int       `json:"version"`
	Number     int       `json:"number"` // counts up from 1 within the sandbox
	SandboxID  string    `json:"sandbox_id"`
	Sandbox    string    `json:"sandbox"`
	Repository string    `json:"repository"`
	GitDir     string    `json:"git_dir"`
	Agent      string    `json:"agent"` // the name of its profile
	Title      string    `json:"title"`
	Client     string    `json:"client_version,omitempty"`
	Session    string    `json:"session"`                // litterbox's own, as in the audit log
	Dialogue   string    `json:"conversation,omitempty"` // the client's own, to resume by
	Prompt     string    `json:"prompt,omitempty"`
	Model      string    `json:"model,omitempty"`      // that was asked for
	Used       string    `json:"model_used,omitempty"` // that the client says it uses
	Screen     bool      `json:"interactive,omitempty"`
	State      RunState  `json:"state"`
	Problem    string    `json:"problem,omitempty"`
	Holder     Process   `json:"holder"` // the process that drives it
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	ExitCode   int       `json:"exit_code"`
	From       string    `json:"from"`           // the branch's tip when it began
	Head       string    `json:"head,omitempty"` // and when it ended
	Commits    int       `json:"commits"`
	Files      int       `json:"files"`
	Commands   int       `json:"commands"`
	TokensIn   int64     `json:"tokens_in"`
	TokensRead int64     `json:"tokens_cached"`
	TokensOut  int64     `json:"tokens_out"`
	CostUSD    float64   `json:"cost_usd,omitempty"` // as the client works it out
	Metered    *Metered  `json:"metered,omitempty"`  // nil where nothing was counted
	Last       string    `json:"last,omitempty"`     // what it said last
	Notes      []string  `json:"notes,omitempty"`
	Deleted    bool      `json:"deleted,omitempty"` // in listings: its sandbox is gone, or in the trash
}

// Metered is the cost of a sandbox's model calls during a run, counted on the host.
type Metered struct {
	Calls      int64 `json:"calls"`
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	CostNano   int64 `json:"cost_nano_usd"`
	Unpriced   int64 `json:"unpriced_tokens"` // of models without a price, which CostNano leaves out
	Open       int64 `json:"open_calls"`      // without a final figure
}
