// Package sandbox is the vocabulary: what a sandbox, a lease, a cycle and an
// iteration are, and the states they pass through. It is pure: no I/O, no clock,
// and of this project only the error type.
//
// Start reading at [Sandbox].
package sandbox

import "time"

// RecordVersion is written into every record on disk. A newer program
// migrates older records; an older program refuses newer ones.
const RecordVersion = 1

// State of a sandbox.
type State string

// The states of a sandbox, the same in code, JSON and listings.
const (
	Creating State = "creating"
	Running  State = "running"
	Paused   State = "paused"
	// Unreachable is running as far as is known: its place does not answer, but is
	// not known to be gone.
	Unreachable State = "unreachable"
	Stopped     State = "stopped"
	Failed      State = "failed"
	Orphaned    State = "orphaned" // its repository is gone from where it was
	Deleting    State = "deleting"
)

// Isolation names the tier a sandbox runs in.
type Isolation string

// The isolation tiers, strongest first.
const (
	IsolationFull     Isolation = "full"     // user namespace, overlay, seccomp
	IsolationDegraded Isolation = "degraded" // less, by an explicit flag
)

// Sandbox is one isolated workspace of one repository.
type Sandbox struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`   // unique on this machine, never reused
	Name       string    `json:"name"` // slug, unique within the repository
	Repository string    `json:"repository"`
	GitDir     string    `json:"git_dir"` // the common git directory on the host
	Branch     string    `json:"branch"`  // short name, prefix included
	Base       string    `json:"base"`    // commit the branch started from
	BaseTree   string    `json:"base_tree"`
	BaseRef    string    `json:"base_ref"`           // what the user's checkout was on, for display
	Onto       string    `json:"onto,omitempty"`     // newer base that update brought the branch to; the layers still hold Base
	OntoRef    string    `json:"onto_ref,omitempty"` // its name then, for display
	Apart      bool      `json:"apart,omitempty"`    // the branch holds what its files do not: others committed there
	Milestone  string    `json:"milestone"`          // commit the next milestone squashes onto
	Layers     []string  `json:"layers"`             // read-only directories below the workspace; the last holds its .git
	Modules    Modules   `json:"modules,omitzero"`
	Carriage   Carriage  `json:"carriage,omitempty"` // empty in older records: an overlay
	Driver     string    `json:"driver"`
	Isolation  Isolation `json:"isolation"`
	State      State     `json:"state"`
	Problem    string    `json:"problem,omitempty"` // why State is failed or orphaned
	Author     Identity  `json:"author"`
	Iterations int       `json:"iterations"` // number of the last iteration
	Last       string    `json:"last"`       // commit of the last iteration
	InnerHead  string    `json:"inner_head"` // last commit taken from the agent's own history
	CreatedAt  time.Time `json:"created_at"`
	Holder     Process   `json:"holder"`              // who creates or deletes it at this moment
	Strict     bool      `json:"strict,omitempty"`    // durability = "strict" when it was last started
	ConfigHash string    `json:"config_hash"`         // of the .litterbox.toml it was created with
	Forked     string    `json:"forked,omitempty"`    // commit that it began with, as a fork of another sandbox
	Worker     *Worker   `json:"worker,omitempty"`    // set of one that spawn made
	Temporary  bool      `json:"temporary,omitempty"` // made by a command for itself, such as a build: it is gone when that ends
	Snapshots  Automatic `json:"snapshots,omitzero"`
	Live       *Live     `json:"live,omitempty"` // nil but for environments
	Image      *Image    `json:"image"`          // what its root file system is made of; nil is the host's own userland
}

// Worker is the beginning of a spawned sandbox.
type Worker struct {
	Number int    `json:"number"`
	Commit string `json:"commit"`
	Branch string `json:"branch"` // the checkout's, or that of the sandbox it was forked from; empty for a detached HEAD
	Dirty  bool   `json:"dirty"`  // the checkout held uncommitted changes, which stayed out
	From   string `json:"from"`   // the sandbox that it was forked from; empty for the checkout
}

// Automatic says when snapshots are taken without being asked for, as the
// configuration had it when the sandbox was last started.
type Automatic struct {
	Every SnapshotKind `json:"every,omitempty"` // SnapshotIteration, SnapshotMilestone or none
	Keep  int          `json:"keep,omitempty"`
}

// From is the commit that the sandbox's own work begins at: the one it was last
// brought to, or its base.
func (s *Sandbox) From() string {
	if s.Onto != "" {
		return s.Onto
	}
	return s.Base
}

// Live is what makes a sandbox an environment: the project directory itself is its
// workspace. It has no branch, and litterbox makes no commits in it.
type Live struct {
	WritableGit bool   `json:"writable_git"`      // --writable-git: nothing in it stays read-only
	GitDir      string `json:"git_dir,omitempty"` // of this worktree; empty without a repository
	Format      string `json:"format,omitempty"`  // of its objects
}

// Identity is a git identity, as the user's configuration had it.
type Identity struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// LeaseState is the state of a lease.
type LeaseState string

// The states of a lease.
const (
	LeaseAcquiring LeaseState = "acquiring"
	LeaseActive    LeaseState = "active"
	LeasePaused    LeaseState = "paused"
	LeaseLost      LeaseState = "lost" // the place is gone: machine rebooted, guest killed
	// LeaseUnreachable: the wire was cut, and the keeper dials again.
	LeaseUnreachable LeaseState = "unreachable"
	LeaseReleased    LeaseState = "released"
)

// Lease is the record that a sandbox holds a running place. It outlives every
// process: any command can re-attach from it.
type Lease struct {
	Version    int        `json:"version"`
	ID         string     `json:"id"`
	SandboxID  string     `json:"sandbox_id"`
	Driver     string     `json:"driver"`
	Handle     []byte     `json:"handle"` // the driver's own serialized data (JSON)
	State      LeaseState `json:"state"`
	AcquiredAt time.Time  `json:"acquired_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	Heartbeat  time.Time  `json:"heartbeat"`
	Beat       Moment     `json:"beat"` // the same by the clock that counts; ExpiresAt and Heartbeat are for reading
	Holder     string     `json:"holder"`
	Health     string     `json:"health"`
	// PausedFor is the reason of a pause, and empty when there is none.
	PausedFor PauseReason `json:"paused_for,omitempty"`
	// UnreachableSince is when the wire was cut, and zero while it is whole.
	UnreachableSince time.Time `json:"unreachable_since,omitzero"`
	// InForce says what enforces each limit in force (Limit.By), by its name.
	InForce map[string]string `json:"in_force,omitempty"`
	// Traits are the properties of the place; none in older records.
	Traits Traits `json:"traits,omitzero"`
}

// PauseReason says why a sandbox is paused, and thus how it goes on.
type PauseReason string

// The reasons of a pause. Only a pause that a user asked for waits for a user to
// end it; the next command ends the others.
const (
	PausedByUser    PauseReason = "asked"  // litterbox pause
	PausedWhileIdle PauseReason = "idle"   // limits.idle-pause
	PausedForPolicy PauseReason = "policy" // a policy revision is being deployed
	PausedForCopy   PauseReason = "copy"   // a snapshot is being taken
)

// Passes reports whether the keeper itself ends such a pause, at once.
func (r PauseReason) Passes() bool { return r == PausedForPolicy || r == PausedForCopy }

// Agent is the record that an agent's session works in a sandbox. It counts
// while Holder lives and has a heartbeat (Expired).
type Agent struct {
	Version       int       `json:"version"`
	Session       string    `json:"session"`
	Client        string    `json:"client"`
	ClientVersion string    `json:"client_version"`
	Holder        Process   `json:"holder"` // the server of the session
	AcquiredAt    time.Time `json:"acquired_at"`
	Heartbeat     time.Time `json:"heartbeat"`
	ExpiresAt     time.Time `json:"expires_at"`
	Beat          Moment    `json:"beat"` // of the heartbeat, by the clock that counts
}

// CycleState is the state of a cycle.
type CycleState string

// The states of a cycle, in order; the last two are terminal.
const (
	Pending        CycleState = "pending"
	Leasing        CycleState = "leasing"
	Preparing      CycleState = "preparing"
	Executing      CycleState = "executing"
	PostProcessing CycleState = "post_processing"
	Completed      CycleState = "completed"
	CycleFailed    CycleState = "failed"
)

// Terminal reports whether a cycle in this state is over.
func (s CycleState) Terminal() bool { return s == Completed || s == CycleFailed }

// Cycle is one run against a lease: a command, a shell, an agent session.
type Cycle struct {
	Version     int        `json:"version"`
	ID          int        `json:"id"` // counts up from 1 within the sandbox
	LeaseID     string     `json:"lease_id"`
	Kind        string     `json:"kind"` // exec, shell, write, setup, …
	Command     string     `json:"command"`
	Message     string     `json:"message"`
	State       CycleState `json:"state"`
	Problem     string     `json:"problem,omitempty"`
	RequestedAt time.Time  `json:"requested_at"`
	StartedAt   time.Time  `json:"started_at"`
	CompletedAt time.Time  `json:"completed_at"`
	ExitCode    int        `json:"exit_code"`
	TimedOut    bool       `json:"timed_out"`
	Policy      int        `json:"policy_revision"` // in force when it began
	Holder      Process    `json:"holder"`          // the client that drives it
}

// Process identifies a host process beyond pid reuse.
type Process struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // clock ticks since boot, proc(5) field 22
	Boot      string `json:"boot"`       // /proc/sys/kernel/random/boot_id
}

// Iteration is one step of a cycle, as recorded in the log.
type Iteration struct {
	Version   int           `json:"version"`
	Number    int           `json:"number"`
	Cycle     int           `json:"cycle"`
	Kind      string        `json:"kind"` // exec, shell, write, cp, dirty, milestone, setup, hook, recovered, agent, checkpoint
	Message   string        `json:"message"`
	Command   string        `json:"command,omitempty"`
	Commit    string        `json:"commit"`
	ExitCode  int           `json:"exit_code"`
	Signal    string        `json:"signal,omitempty"`
	TimedOut  bool          `json:"timed_out,omitempty"`
	StartedAt time.Time     `json:"started_at"`
	Duration  time.Duration `json:"duration_ns"`
	Changed   int           `json:"changed"` // paths that differ from the iteration before
	Notes     []string      `json:"notes,omitempty"`
	Agent     string        `json:"agent,omitempty"`   // whose step it is: its client, with the version
	Session   string        `json:"session,omitempty"` // as in the audit log
	Prompt    string        `json:"prompt,omitempty"`  // what it was asked to do
	// Cost is the counted cost of model calls in the sandbox when the step was
	// committed, in billionths of a dollar; steps of agents have it.
	Cost  int64    `json:"cost_nano_usd,omitempty"`
	Paths []string `json:"-"` // the first of those that differ; only in the answer
}
