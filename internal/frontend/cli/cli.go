// Package cli is the command line: it turns arguments into requests to the
// engine and results into text, JSON and exit codes.
//
// It deliberately decides nothing about sandboxes: what a command does is in
// package engine, and this package could be deleted without changing it. No
// name of a driver appears here.
//
// Start reading at [Main]; newRoot lists the commands, and each of them has a
// file of its own: an options struct with exactly what it needs, a constructor
// that fills it from flags, and a run function that knows nothing of flags.
package cli

import (
	"context"
	"io"
	"iter"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Program is what the composition root hands to [Main].
type Program struct {
	// Version is set by the linker of a release; empty means what the build
	// information of the binary says.
	Version string
	// Build makes the engine. It is called at most once, and not at all by
	// commands that need none, such as version and help.
	Build func(engine.Progress) (*engine.Engine, error)
	// Serve serves agents; see the command mcp.
	Serve func(context.Context, ServeRequest) error
}

// Main runs the command line args (without the program's name) on the standard
// streams of this process and returns its exit code.
func Main(ctx context.Context, p Program, args []string) int {
	// Caught, so that a closed pipe is an error of the write and commands can
	// still commit; not ignored, because children inherit an ignored signal
	// across execve (signal(7)) and git relies on it to end its pager.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	c := newConsole(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	build := func() (useCases, error) {
		e, err := p.Build(c.progress.update)
		if err != nil {
			return nil, err
		}
		e.Note = func(note string) { c.note("%s", note) }
		return e, nil
	}
	return (&session{console: c, version: p.Version, build: build, serve: p.Serve}).run(ctx, args)
}

// useCases is what the commands need of the engine; tests put a fake here.
type useCases interface {
	Within(dir string) string
	Refs(ctx context.Context, dir string) ([]string, error)
	FindProgram(ctx context.Context, place engine.Place, program string, allowDegraded bool) (bool, error)
	Tree(ctx context.Context, dir, name, below string) ([]string, error)
	Create(context.Context, engine.CreateRequest) (engine.Creation, error)
	AwaitServices(ctx context.Context, dir, name string, patience time.Duration) ([]engine.NotReady, error)
	Exec(context.Context, engine.ExecRequest) (engine.ExecResult, error)
	Refused(context.Context, engine.Place, time.Time) ([]engine.Refusal, error)
	Read(ctx context.Context, dir, name, path string, w io.Writer) error
	Write(context.Context, engine.WriteRequest) (it *sandbox.Iteration, notes []string, err error)
	Copy(context.Context, engine.CopyRequest) (it *sandbox.Iteration, notes []string, err error)
	Milestone(ctx context.Context, dir, name, message string) (engine.Milestoned, error)
	TakeSnapshot(ctx context.Context, dir, name, label string) (engine.Snapshot, error)
	Snapshots(ctx context.Context, dir, name string) ([]engine.Snapshot, error)
	DeleteSnapshots(ctx context.Context, dir, name string, which []string) ([]engine.Snapshot, error)
	RestoreSnapshot(context.Context, engine.RestoreRequest) (engine.Reverted, error)
	Rewind(context.Context, engine.RewindRequest) (engine.Reverted, error)
	Fork(context.Context, engine.ForkRequest) (engine.Forked, error)
	Compare(context.Context, engine.CompareRequest) ([]engine.Compared, error)
	List(ctx context.Context, dir string, all bool) ([]engine.Info, error)
	Exists(ctx context.Context, dir, name string) (bool, error)
	Status(ctx context.Context, dir, name string) (engine.Status, error)
	Log(ctx context.Context, dir, name string) ([]sandbox.Iteration, error)
	Diff(context.Context, engine.DiffRequest) (int, error)
	Path(ctx context.Context, dir, name string) (string, error)
	Cycles(ctx context.Context, dir, name string) ([]sandbox.Cycle, error)
	Events(ctx context.Context, request engine.EventsRequest, each func(sandbox.Event) error) error
	Watch(context.Context, engine.WatchRequest, func(engine.Activity) error) error
	Merge(context.Context, engine.MergeRequest) (engine.MergeResult, error)
	Delete(context.Context, engine.DeleteRequest) (engine.DeleteResult, error)
	Stop(context.Context, engine.StopRequest) (engine.StopResult, error)
	Trash(ctx context.Context, dir string, all bool) ([]engine.Trashed, error)
	Restore(ctx context.Context, dir, name string) (restored engine.Restored, notes []string, err error)
	EmptyTrash(context.Context, engine.EmptyRequest) ([]engine.Trashed, error)
	Start(ctx context.Context, dir, name string, allowDegraded bool) (notes []string, err error)
	Trust(ctx context.Context, dir string) (engine.TrustResult, error)
	Secrets(ctx context.Context, dir string) ([]engine.Secret, error)
	SetSecret(context.Context, engine.SecretRequest) (from string, err error)
	RemoveSecret(context.Context, engine.SecretRequest) (from string, err error)
	TestSecrets(context.Context, engine.SecretRequest) ([]engine.Secret, error)
	Doctor(ctx context.Context) (engine.Report, error)
	DriverNames() []string
	DriverReport(name string) (engine.DriverReport, error)
	Fix(ctx context.Context, found []engine.Leftover) []engine.Leftover
	Network(ctx context.Context, dir, name string) (engine.Network, error)
	FollowNetwork(ctx context.Context, dir, name string, report func(engine.Observation)) error
	SuggestNetwork(ctx context.Context, dir, name string) ([]engine.Suggestion, error)
	ExplainNetwork(ctx context.Context, dir, name, destination string) (engine.Explanation, error)
	ChangePolicy(context.Context, engine.PolicyRequest) (engine.Network, error)
	Presets(context.Context) []engine.Preset
	Service(context.Context, engine.ServiceRequest) (engine.ServiceResult, error)
	ServiceLogs(context.Context, engine.LogRequest) (engine.LogPage, error)
	FollowServiceLogs(ctx context.Context, r engine.LogRequest, report func(engine.LogLine) error) error
	Ports(ctx context.Context, dir, name string) ([]engine.Port, error)
	OpenPort(ctx context.Context, dir, name, port string) (p engine.Port, notes []string, err error)
	Reattach(ctx context.Context, dir, old string) ([]engine.Reattached, error)
	Strays(ctx context.Context, dir string) ([]engine.Info, error)
	DiskUsage(ctx context.Context, dir string, all bool) (engine.DiskUsage, error)
	Prune(context.Context, engine.PruneRequest) ([]engine.Pruned, error)
	Samples(ctx context.Context, dir string, all, disk bool) ([]engine.Sample, error)
	Limits(context.Context, engine.LimitsRequest) (engine.Limits, error)
	Cost(context.Context, engine.CostRequest) (engine.CostReport, error)
	Signatures(ctx context.Context, dir, name string) ([]engine.Signature, error)
	Approve(context.Context, engine.ApproveRequest) error
	Pause(context.Context, engine.PauseRequest) ([]engine.PauseResult, error)
	Resume(context.Context, engine.PauseRequest) ([]engine.PauseResult, error)
	Audit(context.Context, engine.AuditQuery) (iter.Seq2[engine.AuditEntry, error], error)
	VerifyAudit(context.Context) (engine.Verification, error)
	InstallAgents(ctx context.Context, dir string, r engine.AgentRequest) (engine.AgentResult, error)
	UninstallAgents(ctx context.Context, dir string, r engine.AgentRequest) (engine.AgentResult, error)
	Agents(ctx context.Context, dir string) ([]engine.AgentStatus, error)
	AgentLogins(ctx context.Context) map[string]engine.AgentLogin
	StartAgent(context.Context, engine.AgentTask) (run engine.Run, notes []string, err error)
	FollowAgent(ctx context.Context, run engine.Run, follow bool, each func(engine.RunLine) error) (engine.Run, error)
	AwaitAgent(ctx context.Context, run engine.Run) (engine.Run, error)
	AttachAgent(ctx context.Context, run engine.Run, streams engine.Streams) (ended bool, err error)
	StopAgent(run engine.Run) error
	LastRun(ctx context.Context, dir, name string) (engine.Run, error)
	Runs(ctx context.Context, dir, name string) ([]engine.Run, error)
	RunOutput(run engine.Run, to io.Writer) error
	PackagePresets(ctx context.Context, dir string) ([]string, error)
}

// session is one invocation of the program: what its commands share.
type session struct {
	console *console
	version string
	dir     directory // -C
	build   func() (useCases, error)
	built   useCases
	serve   func(context.Context, ServeRequest) error
}

func run(ctx context.Context, c *console, version string, build func() (useCases, error), args []string) int {
	return (&session{console: c, version: version, build: build}).run(ctx, args)
}

func (s *session) run(ctx context.Context, args []string) int {
	c := s.console
	root := newRoot(s)
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args to cobra
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	c.progress.clear()
	return report(c.stderr, err, passesThrough(cmd))
}

// engine builds the engine on first use.
func (s *session) engine() (useCases, error) {
	if s.built == nil {
		e, err := s.build()
		if err != nil {
			return nil, err
		}
		s.built = e
	}
	return s.built, nil
}

// action makes the RunE of a command that works on the engine: where the user
// stands, the engine, and a context that ends at an interrupt.
func (s *session) action(run func(ctx context.Context, e useCases, dir string, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		dir, err := s.dir.absolute()
		if err != nil {
			return err
		}
		e, err := s.engine()
		if err != nil {
			return err
		}
		ctx, stop := interruptible(onOwnBehalf(cmd.Context()))
		defer stop()
		return run(ctx, e, dir, args)
	}
}

// onOwnBehalf is ctx for use cases that work for who typed the command, which is
// who this process belongs to.
func onOwnBehalf(ctx context.Context) context.Context {
	if ctx == nil { // of a command that was not executed, as in completion
		ctx = context.Background()
	}
	return caller.For(ctx, caller.ThisProcess())
}
