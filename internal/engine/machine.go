package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Check is one line of doctor.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // the full tier needs it
	Found  string `json:"found"`
	Mend   string `json:"mend,omitempty"` // exact command
}

// Report is doctor's findings. Isolation is empty when not even a degraded tier
// is possible.
type Report struct {
	Isolation sandbox.Isolation `json:"isolation"`
	Checks    []Check           `json:"checks"`
	Leftovers []Leftover        `json:"leftovers"`
	Drivers   []DriverReport    `json:"drivers"`
}

// Doctor tells which isolation tier holds on this machine, why, the exact command
// that mends what is missing, and what crashes have left behind. The clients are
// those of the configuration in dir. It changes nothing; see Fix.
func (e *Engine) Doctor(ctx context.Context, dir string) (Report, error) {
	defer e.busy("looking at this machine")()
	report := Report{Isolation: sandbox.IsolationFull, Drivers: e.driverReports()}
	version := Check{Name: "git", Needed: true, Mend: "install git 2.31 or newer"}
	if out, err := (git.Command{Dir: "/", Plain: true, Args: []string{"version"}}).Line(ctx); err != nil {
		version.Found = "not found"
	} else {
		version.Found = strings.TrimPrefix(strings.TrimSpace(out), "git version ")
		version.OK = !git.TooOld(version.Found)
	}
	report.Checks = append(report.Checks, version, homeCheck(callerOf(ctx)))
	report.Checks = append(report.Checks, e.Probe(e.Store.Root)...)
	for _, check := range report.Checks {
		if check.Needed && !check.OK {
			report.Isolation = e.less(check, report.Isolation)
		}
	}
	report.Checks = append(report.Checks, e.clientChecks(ctx, dir)...)
	var err error
	if version.OK {
		report.Leftovers, err = e.leftovers(ctx)
	}
	return report, err
}

// homeCheck checks who owns this home. The state directory and the configuration
// are refused where they are another user's; git and its helpers look into HOME by
// themselves.
func homeCheck(caller *caller.Caller) Check {
	check := Check{Name: "home", OK: true, Found: "no HOME"}
	home := caller.Home
	if home == "" {
		return check
	}
	check.Found = home
	if err := ownership.Check(home); fault.KindOf(err) == fault.Denied {
		check.OK, check.Found, check.Mend = false, err.Error()+"; git runs what the configuration there names", fault.HintOf(err)
	}
	return check
}

// less is the isolation that a failed check leaves possible: the degraded tier
// needs no user namespaces.
func (e *Engine) less(failed Check, isolation sandbox.Isolation) sandbox.Isolation {
	d := e.Drivers.Get(e.Degraded)
	if isolation == "" || failed.Name != "user namespaces" || d == nil || !degradedTier(d.Capabilities()).Available {
		return ""
	}
	return sandbox.IsolationDegraded
}

// TrustResult says what the human has just allowed.
type TrustResult struct {
	Path   string   `json:"path"`
	Hash   string   `json:"hash"`
	Grants []string `json:"grants"`
	Notes  []string `json:"notes,omitempty"`
}

// Trust lets the repository's configuration, as it is now, grant what needs the
// human's consent. A changed file is no longer trusted.
func (e *Engine) Trust(ctx context.Context, dir string) (result TrustResult, err error) {
	return e.trust(ctx, dir, "")
}

// trust is Trust for the content with that hash only; "" stands for any.
func (e *Engine) trust(ctx context.Context, dir, shown string) (result TrustResult, err error) {
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return TrustResult{}, err
	}
	repoConfig, err := config.Load(repo.Top)
	if err != nil {
		return TrustResult{}, err
	}
	if repoConfig.Hash == "" {
		return TrustResult{}, fault.New(fault.NotFound, "cannot trust the configuration of %q: there is no %s", repo.Top, config.RepositoryFile)
	}
	if shown != "" && repoConfig.Hash != shown {
		return TrustResult{}, fault.New(fault.Conflict, "cannot trust %s: it has changed since it was shown", config.RepositoryFile).
			WithHint("litterbox trust")
	}
	user, err := config.LoadUser(callerOf(ctx))
	if err != nil {
		return TrustResult{}, err
	}
	_, call, err := e.record(ctx, "trust", dir, "", map[string]any{"hash": repoConfig.Hash})
	if err != nil {
		return TrustResult{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	_, withheld := config.Merge(config.Config{}, repoConfig, false)
	grants := wanted(user.Limits, repoConfig.Limits)
	for _, key := range withheld {
		grants = append(grants, grant(key, repoConfig))
	}
	if err := (config.Trust{File: e.Store.TrustFile()}).Grant(ctx, repo.CommonDir, repoConfig.Hash); err != nil {
		return TrustResult{}, err
	}
	result = TrustResult{Path: repo.Top + "/" + config.RepositoryFile, Hash: repoConfig.Hash, Grants: grants}
	if slices.Contains(withheld, "network.allow") {
		names, err := e.Store.Names(repo.CommonDir)
		if err != nil {
			return result, err
		}
		if len(names) > 0 {
			result.Notes = append(result.Notes, "network.allow applies to new sandboxes; for an existing one: litterbox allow NAME "+strings.Join(repoConfig.Network.Allow, " "))
		}
	}
	return result, nil
}

// grant says what a key that needs trust asks for.
func grant(key string, c config.Config) string {
	switch key {
	case "driver":
		return key + ": " + c.Driver
	case "container.base-image":
		return key + ": " + c.Container.BaseImage
	case "container.build-caches":
		return key + ": " + strings.Join(c.Container.BuildCaches, " ")
	case "mounts.read-only":
		return key + ": " + strings.Join(c.Mounts.ReadOnly, " ")
	case "mounts.read-write":
		return key + ": " + strings.Join(c.Mounts.ReadWrite, " ")
	case "network.allow":
		return key + ": " + strings.Join(c.Network.Allow, " ")
	case "network.default":
		return key + ": " + c.Network.Default
	case "secrets":
		return key + ": " + secretsAsked(c.Secrets)
	case "hooks.pre_run":
		return key + ": " + quoteCommand(c.Hooks.PreRun)
	}
	return key
}
