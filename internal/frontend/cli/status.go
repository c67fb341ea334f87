package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type statusOptions struct {
	console *console
	list    func(ctx context.Context, dir string, all bool) ([]engine.Info, error)
	status  func(ctx context.Context, dir, name string) (engine.Status, error)

	dir, name string // an empty name means every sandbox of the repository
	json      bool
}

func newStatus(s *session) *cobra.Command {
	o := &statusOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show everything about a sandbox",
		Long: `Show everything about a sandbox, or about each sandbox of this repository: what
runs in it, what it sees of the host, and where its state is stored.`,
		Example: `  litterbox status fix-login
  litterbox status fix-login --json`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.list, o.status, o.dir = e.List, e.Status, dir
			if len(args) == 1 {
				o.name = args[0]
			}
			return runStatus(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON object, or without NAME an array of them")
	return cmd
}

func runStatus(ctx context.Context, o *statusOptions) error {
	names := []string{o.name}
	if o.name == "" {
		infos, err := o.list(ctx, o.dir, false)
		if err != nil {
			return err
		}
		names = names[:0]
		for _, info := range infos {
			names = append(names, info.Name)
		}
	}
	statuses := []engine.Status{}
	for _, name := range names {
		status, err := o.status(ctx, o.dir, name)
		if err != nil {
			return err
		}
		status.Cycles, status.Background, status.Mounts = list(status.Cycles), list(status.Background), list(status.Mounts)
		status.Services, status.Ports = list(status.Services), list(status.Ports)
		status.Sessions = list(status.Sessions)
		status.Limits, status.Reached = list(status.Limits), list(status.Reached)
		statuses = append(statuses, status)
	}
	switch {
	case o.json && o.name != "":
		return o.console.document(statuses[0])
	case o.json:
		return o.console.document(statuses)
	case len(statuses) == 0:
		o.console.note("no sandboxes yet; make one with: litterbox create NAME")
	}
	for i, status := range statuses {
		if i > 0 {
			if err := o.console.print("\n"); err != nil {
				return err
			}
		}
		if err := o.console.table(statusRows(o.console, status)); err != nil {
			return err
		}
	}
	return nil
}

func statusRows(c *console, s engine.Status) [][]string {
	rows := [][]string{
		{"name", s.Name},
		{"state", string(s.State)},
	}
	if s.Problem != "" {
		rows = append(rows, []string{"problem", s.Problem})
	}
	rows = append(rows,
		[]string{"branch", s.Branch},
		[]string{"base", baseLine(s.Info)},
		[]string{"head", short(s.Head)},
		[]string{"steps", decimal(s.Iterations)},
		[]string{"isolation", string(s.Isolation)},
		[]string{"network", s.Network + ", revision " + decimal(s.Revision)},
		[]string{"driver", s.Driver},
		[]string{"lease", leaseLine(c, s.Lease)},
		[]string{"held by", agentLine(c, s.Agent)},
		[]string{"repository", s.Repository},
		[]string{"trusted", yesNo(s.Trusted)},
		[]string{"created", ago(c.now(), s.CreatedAt)},
	)
	if s.Worker != nil {
		rows = append(rows, []string{"worker", workerText(s.Worker)})
	}
	if s.BaseImage != nil {
		rows = append(rows, []string{"base image", baseImage(s.BaseImage)})
		if s.BaseImage.Runtime != "" {
			rows = append(rows, []string{"runtime", s.BaseImage.Runtime})
		}
	}
	for _, limit := range s.Limits {
		running := s.State == sandbox.Running || s.State == sandbox.Paused
		rows = append(rows, []string{"limit", limit.Name + " " + limit.Value + " (" + limit.From + ", kept by " + keptBy(limit, running) + ")"})
	}
	if s.Resources != nil {
		rows = append(rows, []string{"uses", used(s.Resources)})
	}
	if s.Machine != nil {
		rows = append(rows, []string{"machine", s.Machine.Name + ", " + s.Machine.Text()})
	}
	if s.Cost != nil {
		rows = append(rows, []string{"cost", costText(s.Cost) + " for " + counted(int(s.Cost.Calls), "call", "calls") + " of models, " + tokenCount(s.Cost.Tokens()) + " tokens"})
	}
	for _, reached := range s.Reached {
		rows = append(rows, []string{"reached", reached.Text + " (" + ago(c.now(), reached.At) + ")"})
	}
	for _, one := range s.Signatures {
		rows = append(rows, []string{"waits", clean(one.Purpose) + ": litterbox approve " + s.Name + " " + decimal(one.ID)})
	}
	for _, cycle := range s.Cycles {
		rows = append(rows, []string{string(cycle.Kind), cycleLine(c, cycle)})
	}
	for _, service := range s.Services {
		text := service.Name + " " + string(service.State)
		if service.Problem != "" {
			text += ": " + service.Problem
		}
		rows = append(rows, []string{"service", text})
	}
	for _, port := range s.Ports {
		rows = append(rows, []string{"port", port.Name + " " + port.URL + " leads to " + number(port.Inside) + " inside" + listening(port)})
	}
	for _, p := range s.Background {
		rows = append(rows, []string{"running", strconv.Itoa(p.PID) + " " + p.Command})
	}
	for _, m := range s.Mounts {
		rows = append(rows, []string{"sees", m.Path + " (" + m.Why + ")"})
	}
	return rows
}

// baseLine says what a sandbox begins at, and how far that has gone on since.
func baseLine(i engine.Info) string {
	switch {
	case i.BaseRef == "":
		return short(i.Base)
	case i.Behind == 0:
		return short(i.Base) + " (" + i.BaseRef + ")"
	}
	return short(i.Base) + " (" + i.BaseRef + ", " + counted(i.Behind, "commit", "commits") + " behind: litterbox update " + i.Name + ")"
}

// baseImage is an image as people name it, with the digest that says which.
func baseImage(i *sandbox.Image) string {
	if i.Digest == "" || strings.HasSuffix(i.Reference, i.Digest) {
		return i.Reference
	}
	return i.Reference + " (" + i.Digest + ")"
}

// used words a place's resource use, as far as it was measured.
func used(m *engine.Metrics) string {
	var parts []string
	add := func(known bool, text string) {
		if known {
			parts = append(parts, text)
		}
	}
	add(m.CPU >= 0, took(m.CPU)+" of processor")
	add(m.Memory >= 0, sandbox.Bytes(m.Memory)+" of memory")
	add(m.Processes >= 0, counted(m.Processes, "process", "processes"))
	add(m.Threads >= 0, counted(m.Threads, "thread", "threads"))
	add(m.Read >= 0, sandbox.Bytes(m.Read)+" read")
	add(m.Written >= 0, sandbox.Bytes(m.Written)+" written")
	add(m.Uptime >= 0, "for "+took(m.Uptime))
	return strings.Join(parts, ", ")
}

// agentLine names the session that holds a sandbox. Its row is not called agent: a
// run of an agent has that one, beside those of other commands.
func agentLine(c *console, agent *sandbox.Agent) string {
	if agent == nil {
		return "-"
	}
	return strings.TrimSpace(agent.Client+" "+agent.ClientVersion) + " (process " + strconv.Itoa(agent.Holder.PID) + ", " + ago(c.now(), agent.AcquiredAt) +
		", heartbeat " + took(c.now().Sub(agent.Heartbeat)) + " ago)"
}

// leaseLine names the keeper of the running place, and the time of its last
// heartbeat.
func leaseLine(c *console, lease *sandbox.Lease) string {
	if lease == nil {
		return "-"
	}
	text := string(lease.State) + ", health " + lease.Health + ", heartbeat " + took(c.now().Sub(lease.Heartbeat)) + " ago"
	var keeper struct {
		PID int `json:"pid"`
	}
	if json.Unmarshal([]byte(lease.Holder), &keeper) == nil && keeper.PID > 0 {
		text += ", kept by process " + decimal(keeper.PID)
	}
	if c.now().After(lease.ExpiresAt) {
		text += ", expired"
	}
	return text
}

func cycleLine(c *console, cycle sandbox.Cycle) string {
	state := string(cycle.State) + ", begun " + ago(c.now(), cycle.StartedAt)
	if cycle.State == sandbox.Completed {
		state = ending(cycle.ExitCode, "", cycle.TimedOut) + " " + ago(c.now(), cycle.CompletedAt)
	}
	return cycle.Command + " (" + state + ")"
}

// listening says what is unusual about a port.
func listening(port engine.Port) string {
	switch {
	case !port.Open:
		return " (not open)"
	case port.Address != "127.0.0.1":
		return " (listens on " + port.Address + ")"
	}
	return ""
}

func decimal(n int) string { return strconv.Itoa(n) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// workerText says what a worker began with.
func workerText(w *sandbox.Worker) string {
	text := "number " + number(w.Number) + ", from " + short(w.Commit)
	if w.Branch != "" {
		text += " of " + w.Branch
	}
	switch {
	case w.From != "":
		text += ", a fork of " + w.From
	case w.Dirty:
		text += "; the checkout held uncommitted changes, which stayed out"
	}
	return text
}
