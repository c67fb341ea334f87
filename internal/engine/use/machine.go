package use

import (
	"context"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// Machine is this machine: what it lacks and what is on its disk.
type Machine interface {
	Doctor(ctx context.Context, dir string) (engine.Report, error)
	Fix(ctx context.Context, found []engine.Leftover) []engine.Leftover
	DriverNames() []string
	DriverReport(name string) (engine.DriverReport, error)
	DiskUsage(ctx context.Context, dir string, all bool) (engine.DiskUsage, error)
	Prune(context.Context, engine.PruneRequest) ([]engine.Pruned, error)
	Reattach(ctx context.Context, dir, old string) ([]engine.Reattached, error)
	ListHere(ctx context.Context, dir string) (infos, strays []engine.Info, err error)
}

// Machines is the other machines.
type Machines interface {
	ListMachines(ctx context.Context) ([]engine.Machine, error)
	AddMachine(context.Context, engine.MachineRequest) (engine.Machine, engine.MachineStatus, error)
	TestMachine(ctx context.Context, name string) (engine.MachineStatus, error)
	RemoveMachine(ctx context.Context, dir, name string, forget bool) error
	Placing(ctx context.Context, machines []string) (*engine.Placing, error)
	SingleVMs(ctx context.Context) ([]engine.SingleVM, error)
	VMStatus(ctx context.Context) (engine.VM, error)
	StartVM(ctx context.Context, dir string) (engine.VM, error)
	StopVM(context.Context, engine.VMRequest) (engine.VM, error)
	RecreateVM(context.Context, engine.VMRequest) (engine.VM, error)
	VMLogs(ctx context.Context) ([]string, error)
	VMShell(ctx context.Context, dir string, argv []string) (command, env []string, err error)
}

// Settings is the human's decisions, for a repository or everywhere.
type Settings interface {
	Init(context.Context, engine.InitRequest) (engine.Initialized, error)
	Trust(ctx context.Context, dir string) (engine.TrustResult, error)
	Configuration(ctx context.Context, dir string) (engine.Configuration, error)
	PackagePresets(ctx context.Context, dir string) ([]string, error)
	Secrets(ctx context.Context, dir string) ([]engine.Secret, error)
	SetSecret(context.Context, engine.SecretRequest) (from string, err error)
	RemoveSecret(context.Context, engine.SecretRequest) (from string, err error)
	TestSecrets(context.Context, engine.SecretRequest) ([]engine.Secret, error)
}

// Agents covers clients on this machine, and their runs inside.
type Agents interface {
	InstallAgents(ctx context.Context, dir string, r engine.AgentRequest) (engine.AgentResult, error)
	UninstallAgents(ctx context.Context, dir string, r engine.AgentRequest) (engine.AgentResult, error)
	Agents(ctx context.Context, dir string) ([]engine.AgentStatus, error)
	AgentLogins(ctx context.Context, dir string) (map[string]engine.AgentLogin, error)
	InsideAgents(ctx context.Context, dir string) ([]string, error)
	CheckAgent(context.Context, engine.AgentTask) (secrets []string, err error)
	StartAgent(context.Context, engine.AgentTask) (run engine.Run, notes []string, err error)
	FollowAgent(ctx context.Context, run engine.Run, follow bool, each func(engine.RunLine) error) (engine.Run, error)
	AwaitAgent(ctx context.Context, run engine.Run) (engine.Run, error)
	AttachAgent(ctx context.Context, run engine.Run, streams engine.Streams) (ended bool, err error)
	StopAgent(run engine.Run) error
	LastRun(ctx context.Context, dir, name string) (engine.Run, error)
	Runs(ctx context.Context, dir, name string) ([]engine.Run, error)
	RunOutput(run engine.Run, to io.Writer) error
}

// Environments covers live environments.
type Environments interface {
	EnvironmentShell(context.Context, engine.EnvironmentRequest) (engine.ExecResult, error)
	Environments(context.Context) ([]engine.Environment, error)
	DeleteEnvironments(context.Context, engine.EnvironmentDeletion) ([]engine.Environment, error)
}

// Hosts tells OpenSSH about sandboxes.
type Hosts interface {
	DoorHosts(ctx context.Context) ([]engine.DoorHost, error)
	DoorBlock(context.Context, engine.DoorRequest) (engine.DoorResult, error)
	InstallDoor(context.Context, engine.DoorRequest) (engine.DoorResult, error)
	UninstallDoor(context.Context, engine.DoorRequest) (engine.DoorResult, error)
}
