package engine

import (
	"context"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"io"
	"os"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Info is one sandbox as listings show it. The JSON fields are pinned by a
// golden file; add, never rename.
type Info struct {
	Name       string            `json:"name"`
	Branch     string            `json:"branch"`
	Base       string            `json:"base"`
	BaseRef    string            `json:"base_ref"` // the branch it began on; "" for none
	Behind     int               `json:"behind"`   // commits of that branch that it lacks
	Head       string            `json:"head"`
	State      sandbox.State     `json:"state"`
	Driver     string            `json:"driver"`
	Isolation  sandbox.Isolation `json:"isolation"`
	Network    string            `json:"network"` // "none", "3 rules" or "open"
	Limits     []sandbox.Limit   `json:"limits"`  // By is empty too while nothing runs
	Repository string            `json:"repository"`
	CreatedAt  time.Time         `json:"created_at"`
	ID         string            `json:"id"`
	Iterations int               `json:"iterations"`
	Agent      *sandbox.Agent    `json:"agent"` // that holds it; null when none does
	Cost       *Cost             `json:"cost"`  // of calls of models; null when none was counted
	Sessions   []Session         `json:"sessions"`
	Worker     *sandbox.Worker   `json:"worker,omitempty"`
	Problem    string            `json:"problem,omitempty"`
	// UnreachableSince is when it answered last; only for an unreachable sandbox.
	UnreachableSince time.Time `json:"unreachable_since,omitzero"`
}

// Status is everything `status NAME` shows.
type Status struct {
	Info
	Lease      *sandbox.Lease  `json:"lease"` // nil when nothing runs
	Revision   int             `json:"policy_revision"`
	Cycles     []sandbox.Cycle `json:"cycles"` // those not over, and the last one
	Background []wire.Process  `json:"background"`
	Mounts     []Mount         `json:"mounts"`
	BaseImage  *sandbox.Image  `json:"base_image"`        // nil: the host's own userland
	Resources  *Metrics        `json:"resources"`         // nil when nothing runs; negative values were not measured
	Machine    *Machinery      `json:"machine,omitempty"` // of its own or shared; nil where no hypervisor has one
	Reached    []Reached       `json:"limits_reached"`    // of late
	Trusted    bool            `json:"trusted"`
	StateDir   string          `json:"state_dir"`
	Services   []ServiceStatus `json:"services"`
	Ports      []Port          `json:"ports"`
	Signatures []Signature     `json:"signatures,omitempty"` // of the ssh-agent, that wait for litterbox approve
}

// What frontends show, which know neither driver nor keeper.
type (
	// Metrics are what a place uses.
	Metrics = driver.Metrics
	// Machinery is what a hypervisor says about a sandbox's virtual machine.
	Machinery = driver.Machine
	// Reached is a limit that was reached.
	Reached = keeper.Reached
)

// Mount is a host directory that a sandbox sees.
type Mount struct {
	Path     string `json:"path"`
	Why      string `json:"why"`      // "toolchain: rustup", "mounts.read-only", …
	Writable bool   `json:"writable"` // the sandbox can write it: mounts.read-write
}

// CreateRequest asks for a new sandbox.
type CreateRequest struct {
	Dir           string // any directory of the repository
	Name          string // as typed; slugified
	Base          string // ref or commit; empty means HEAD
	Dirty         bool   // the checkout's uncommitted tracked changes become the first commit
	Pull          bool   // ask the registry what container.base-image stands for now
	AllowDegraded bool
	Driver        string // empty: the configuration's, or the program's default
	// Review gets, before anything is made, the requests of the repository's
	// configuration that do not count, and reports whether to trust it. Nil goes
	// on without, and the notes say so.
	Review func(context.Context, Untrusted) (trust bool, err error)
	// Output takes what container.setup-command prints while it runs; nil leaves
	// its end for the error.
	Output io.Writer
	// Golden names the one that it begins with; empty means DefaultGolden, where
	// there is one. NoGolden begins without.
	Golden   string
	NoGolden bool
}

// Untrusted lists the requests of a configuration that need trust.
type Untrusted struct {
	Path  string   // of the file
	Asks  []string // a sentence for each
	Image string   // that it asks for; without it no sandbox is made
}

// Streams are a command's standard streams on the host side. Terminal is the size
// of the user's terminal when the command gets a terminal of its own; Resize then
// delivers changes. Signals delivers what the client caught, as names without SIG;
// the command's whole process group gets them. Started, unless nil, is called once,
// before the command is sent: from then on Signals reach it.
type Streams struct {
	Started  func()
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal *wire.Terminal
	Resize   <-chan wire.Terminal
	Signals  <-chan string
}

// ExecRequest asks for one command in a sandbox.
type ExecRequest struct {
	Dir           string // any directory of the repository
	Name          string
	Argv          []string
	Command       string // what the log and the commit show; empty quotes Argv
	Message       string // first line of the commit; empty derives one from Argv
	Timeout       time.Duration
	NoCommit      bool
	Env           []string // K=V
	WorkDir       string   // inside, relative to the workspace or absolute
	Kind          string   // "exec" or "shell"
	Interactive   bool     // Argv is a shell; on a terminal it gets what a usual one has
	Lenient       bool     // no step is made where nothing changed
	Streams       Streams
	AllowDegraded bool
	Driver        string // that the sandbox must have; empty: any
	Keep          int64  // output longer than that many bytes is kept in a file inside; 0: never
	// Ask is called, one question at a time, when something inside tries to reach a
	// destination that no rule allows, and waits; its context ends with the
	// command. Nil refuses at once.
	Ask func(context.Context, Question) Decision
	// Refusals asks for what the network refuses from the request on.
	Refusals bool
	// Agent is the agent that the command belongs to, if any.
	Agent *Working
	// Checkpoints commit its work while it runs; the zero value is an ordinary
	// command's pace, and a negative Quiet never.
	Checkpoints Checkpoints
}

// ExecResult is the outcome of a command. A command that failed is not an error.
type ExecResult struct {
	Exit      wire.Exit
	Iteration *sandbox.Iteration // nil with NoCommit
	Notes     []string           // files that stayed out, repairs that were made
	Refused   []Refusal          // with Refusals
	// Environment is the name of the live environment that it ran in; empty: in a sandbox.
	Environment string
}

// WriteRequest writes one file and commits.
type WriteRequest struct {
	Dir     string
	Name    string
	Path    string
	Message string
	Content io.Reader
	Append  bool        // Content comes after what the file holds
	Mode    os.FileMode // 0 keeps the mode of an existing file, or 0644
	// Guarded is for agents' tools: nothing in a .git; with Visible no hidden
	// file either, and with Expect (SHA-256, hexadecimal) only that content.
	Guarded bool
	Visible bool
	Expect  string
}

// CopyRequest copies between host and sandbox; exactly one of From and To is inside.
type CopyRequest struct {
	Dir     string
	Name    string
	Inside  string // path inside
	Outside string // path on the host, or in the sandbox From
	ToHost  bool
	Message string
	From    string    // a sandbox that is copied from; empty: the host
	Stdin   io.Reader // a tar stream to unpack at Inside; nil: none
	Stdout  io.Writer // takes what is copied to the host as a tar stream; nil: Outside
}

// What a merge may land instead of the steps as they are.
const (
	HistoryMilestones = config.HistoryMilestones
	HistoryOne        = config.HistoryOne
)

// MergeRequest brings a branch onto HEAD of the user's checkout.
type MergeRequest struct {
	Dir      string
	Name     string
	Args     []string // for git merge, in order
	Yes      bool
	RunHooks bool
	Delete   bool // merge, not apply
	// History is what lands: HistoryMilestones or HistoryOne, or empty for the
	// configured one.
	History   string
	Introduce bool // say, once for each repository, what lands and how to change it
	Stop      bool // merge: end what is at work inside, and merge what it did too
	// Solve are arguments of git mergetool, with which conflicts are solved before
	// the checkout is touched; nil leaves conflicts to the human.
	Solve []string
	// ConfirmStop names what is at work and asks whether to end it; nil means
	// that Stop is needed.
	ConfirmStop func([]Work) (bool, error)
	// Confirm shows the files that could run code on the host, the most urgent
	// first, and asks; without it Yes is needed. It is asked again when the
	// checkout moves on meanwhile.
	Confirm func(risky []Risk) (bool, error)
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// verb is the command that asks for it.
func (r MergeRequest) verb() string {
	if r.Delete {
		return "merge"
	}
	return "apply"
}

// Risk is a changed path that could run code on the host after a merge.
type Risk struct {
	Path   string `json:"path"`
	Class  string `json:"class"` // by what it runs: docs/reference/risky-files.md
	Reason string `json:"reason"`
	Rank   int    `json:"rank"` // 1 to 5: how soon it runs
}

// MergeResult tells how git ended and what litterbox did about the sandbox.
type MergeResult struct {
	ExitCode int // git's own
	Landed   bool
	Deleted  bool
	Risks    []Risk // the approved ones, or, beside an error of the kind denied, the others
	Notes    []string
	Running  []Work // what was at work when its state was taken, and may have gone on
	Ended    []Work // what was ended for it
}

// DeleteRequest deletes sandboxes and keeps their tips in the trash.
type DeleteRequest struct {
	Dir   string
	Name  string
	Force bool
	Stop  bool // end what is at work inside, and commit what it did
	// Left allows to end processes that commands left running, and no more.
	Left bool
	// ConfirmStop is as in MergeRequest.
	ConfirmStop func([]Work) (bool, error)
	Purge       bool // nothing stays in the trash
	Lean        bool // only the last commit stays there: to make room
	// Confirm asks whether unmerged commits may go; nil means Force is needed.
	Confirm func(unmerged int) (bool, error)
}

// DeleteResult says where the tip remains reachable.
type DeleteResult struct {
	Name  string `json:"name"`
	Tip   string `json:"tip"`
	Trash string `json:"trash"` // ref that keeps the tip
	Ended []Work `json:"ended"` // what was at work and was ended

	// Until is for how long its files, home and log stay in the trash; without
	// it they are gone.
	Until *time.Time `json:"until,omitempty"`
}

// StopRequest ends everything that runs in a sandbox.
type StopRequest struct {
	Dir  string
	Name string
	// ConfirmStop is asked when clients would lose the sandbox they work in; nil
	// asks no one.
	ConfirmStop func([]Work) (bool, error)
}

// StopResult says what was ended.
type StopResult struct {
	Name  string `json:"name"`
	Ended []Work `json:"ended"`
}

// Milestoned is a milestone, the work under way when it was made, and the large
// files that it adds or changes.
type Milestoned struct {
	*sandbox.Iteration
	Running []Work
	Large   []LargeFile // the largest first
}

// LargeFile is a file that a commit makes larger than people expect.
type LargeFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"` // bytes
}

// DiffRequest prints what a sandbox changed since its base.
type DiffRequest struct {
	Dir   string
	Name  string
	Since string   // "milestone" (the last one), a step's number, a snapshot, or empty: the base
	To    string   // a step's number or a snapshot, or empty: the present state
	With  string   // another sandbox of the repository, instead of Since: the changes from its state to this one's
	Args  []string // for git diff, in order
	// Risky gets the files that could run code on the host after a merge; without
	// it they are notes.
	Risky  func(risks []Risk)
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Progress receives the progress of long work: a label, how much is done and
// how much there is (0 when unknown). It may be called from any goroutine.
type Progress func(label string, done, total int)
