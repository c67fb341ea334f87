// Package config reads what people configure: `.litterbox.toml` at the top of a
// repository, and the user's own config.toml, strictly. A key that is unknown, of
// the wrong type or not acted upon yet is an error with its line and column, so
// that no one relies on a line that does nothing.
//
// The repository's file is not trusted: it came with a clone. [Merge] leaves out
// values that would reach the host until the human has agreed to exactly this
// content, which [Trust] remembers. The package decides nothing else and mounts,
// runs and expands nothing.
//
// Start reading at keys.go, which lists every key.
package config

import (
	"maps"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// Config is one file, or after [Merge] the values that count. The zero value is an
// absent file.
type Config struct {
	Driver     string // of new sandboxes; empty: the program's default
	Machine    string // that new sandboxes are made on; empty: according to Driver
	Container  Container
	Git        Git
	Mounts     Mounts
	Network    Network
	Security   Security
	Secrets    []secret.Spec  // by name
	Limits     sandbox.Limits // as this file sets them; after Merge the stricter of both
	IdlePause  time.Duration  // limits.idle-pause; 0: never
	IdleStop   time.Duration  // limits.idle-stop; 0: the default, negative: never
	Retention  Retention
	Cost       Cost
	SSHAgent   SSHAgent
	Shell      Shell
	Hooks      Hooks
	Snapshots  Snapshots
	Golden     Golden
	VM         VM         // of the user's own file alone
	Copy       []string   // patterns of ignored files that a new sandbox gets
	Durability Durability // empty when not set: [Normal]
	Agents     Agents     // clients of the user's own
	Editors    Editors    // of the user's own file alone

	// Set names the keys that the file sets, sorted: a boolean that is false
	// there is not the same as one that is missing.
	Set []string
	// File is where it was read, and Hash is [Hash] of the content; both are
	// empty when there is no file. After Merge they are the repository's.
	File string
	Hash string
}

// Container is the section about the place itself.
type Container struct {
	// PackageCaches are names of packagecache; nil means all, and an empty
	// list none.
	PackageCaches []string
	BuildCaches   []string          // names of packagecache; none unless set
	BaseImage     string            // as image.Parse reads it; empty when not set: the host's userland
	Runtime       string            // of containers of an engine, as the engine calls it; empty: its default
	Packages      []string          // of the userland's package manager
	SetupCommand  []string          // arguments of one command, run once at creation
	Env           map[string]string // environment of every command
	Services      []service.Spec    // by name
	Ports         []Port            // by name
	PortsListen   string            // address of this machine; empty means loopback
}

// Editors is the section about editors that work inside by a server.
type Editors struct {
	Cache []string // names of packagecache; none unless set
}

// Git is the section about branches.
type Git struct {
	BranchPrefix string // put before the sandbox's name, unchanged
	History      string // what merge and apply land; empty is HistorySteps
}

// What merge and apply land of a sandbox's branch.
const (
	HistorySteps      = "steps"      // its commits as they are
	HistoryMilestones = "milestones" // what came since the last milestone as one
	HistoryOne        = "one"        // all of it as one commit
)

// Mounts is the section about host directories.
type Mounts struct {
	ReadOnly  []string // clean absolute paths, or "~/" and a clean path
	ReadWrite []string // likewise, and never a directory of the system
}

// Network is the section about what may leave a sandbox. The rules are in the
// canonical text of egress.Rule, each of them once.
type Network struct {
	Default string // egress.Deny or egress.Allow; empty when not set: deny
	Allow   []string
	Deny    []string
}

// Security is the section about weaker isolation.
type Security struct {
	Nested bool // inner user namespaces
}

// Retention says what prune may clear away; zero values say nothing.
type Retention struct {
	MaxAge   time.Duration // since the last thing that happened in a sandbox
	MaxDisk  int64         // bytes of all of them together
	KeepLast int           // this many of the newest stay in any case
	States   []string      // of which sandboxes go; nil means stopped and failed
	Trash    time.Duration // how long files of deleted sandboxes stay; 0 means the default
	NoTrash  bool          // they do not stay at all
}

// Durability says what a commit survives.
type Durability string

// The durabilities.
const (
	Normal Durability = "normal" // power loss may cost the last seconds
	Strict Durability = "strict" // every commit is flushed
)

// Merge puts the repository's values above the user's defaults: environment
// variables, services, secrets and ports one by one, mounts, network rules and copied
// files in addition, everything else as a whole. Keys that need trust count from the
// repository only when it is trusted; withheld names those of its keys that were left
// out.
func Merge(user, repo Config, trusted bool) (merged Config, withheld []string) {
	merged = user
	merged.File, merged.Hash = repo.File, repo.Hash
	merged.Container.SetupCommand = slices.Clone(user.Container.SetupCommand)
	merged.Container.Packages = slices.Clone(user.Container.Packages)
	merged.Container.PackageCaches = slices.Clone(user.Container.PackageCaches)
	merged.Container.BuildCaches = slices.Clone(user.Container.BuildCaches)
	merged.Container.Env = maps.Clone(user.Container.Env)
	merged.Container.Services = slices.Clone(user.Container.Services)
	merged.Container.Ports = slices.Clone(user.Container.Ports)
	merged.Mounts.ReadOnly = slices.Clone(user.Mounts.ReadOnly)
	merged.Mounts.ReadWrite = slices.Clone(user.Mounts.ReadWrite)
	merged.Network.Allow = slices.Clone(user.Network.Allow)
	merged.Network.Deny = slices.Clone(user.Network.Deny)
	merged.Copy = slices.Clone(user.Copy)
	merged.Secrets = slices.Clone(user.Secrets)
	merged.Retention.States = slices.Clone(user.Retention.States)
	merged.Cost.Hosts = slices.Clone(user.Cost.Hosts)
	merged.Cost.Prices = maps.Clone(user.Cost.Prices)
	merged.SSHAgent.Keys = slices.Clone(user.SSHAgent.Keys)
	merged.SSHAgent.Hosts = slices.Clone(user.SSHAgent.Hosts)
	merged.Hooks.PreRun = slices.Clone(user.Hooks.PreRun)
	merged.Hooks.PostProvision = slices.Clone(user.Hooks.PostProvision)
	merged.Hooks.PostSync = slices.Clone(user.Hooks.PostSync)
	merged.Golden.Tools = maps.Clone(user.Golden.Tools)
	merged.Golden.Agents = slices.Clone(user.Golden.Agents)
	merged.Golden.Inputs = slices.Clone(user.Golden.Inputs)
	merged.Set = slices.Clone(user.Set)
	for _, key := range schema() {
		switch {
		case !slices.Contains(repo.Set, key.Name), key.Own: // Load refuses the latter
		case !trusted && key.withheld(repo):
			withheld = append(withheld, key.Name)
		default:
			key.merge(&merged, repo)
			merged.Set = append(merged.Set, key.Name)
		}
	}
	slices.Sort(merged.Set)
	merged.Set = slices.Compact(merged.Set)
	return merged, withheld
}
