package engine

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// CompareRequest puts sandboxes side by side.
type CompareRequest struct {
	Dir   string
	Names []string
	Test  []string // run in each, without a commit; empty takes the last command's exit code
	// Progress is told which sandbox the test begins in.
	Progress func(name string)
}

// Compared is one of them. Files and lines are those that differ from its base,
// uncommitted changes included.
type Compared struct {
	Name       string `json:"name"`
	Base       string `json:"base"`
	Head       string `json:"head"`
	Commits    int    `json:"commits"` // since the base
	Iterations int    `json:"iterations"`
	Files      int    `json:"files"`
	Added      int    `json:"added"` // lines
	Deleted    int    `json:"deleted"`
	Test       string `json:"test"`      // the command whose exit code it is; empty: none has run
	ExitCode   *int   `json:"exit_code"` // null when none has run
	// Cost is what model calls have cost there; null where none was counted.
	Cost *Cost `json:"cost"`
}

// Compare puts sandboxes side by side, so that the best of several ways is found.
func (e *Engine) Compare(ctx context.Context, request CompareRequest) ([]Compared, error) {
	costs, err := e.costs()
	if err != nil {
		return nil, err
	}
	for i, name := range request.Names { // before a test begins in any of them
		if slices.Contains(request.Names[:i], name) {
			return nil, fault.New(fault.Invalid, "cannot compare sandbox %q with itself", name).WithHint("litterbox compare --help")
		}
		if _, err := e.find(ctx, request.Dir, name); err != nil {
			return nil, err
		}
	}
	var found []Compared
	for _, name := range request.Names {
		one, err := e.compareOne(ctx, name, request, costs)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

func (e *Engine) compareOne(ctx context.Context, name string, request CompareRequest, costs map[string]*Cost) (Compared, error) {
	one := Compared{}
	p, err := e.find(ctx, request.Dir, name)
	if err != nil {
		return one, err
	}
	defer e.tell(p)
	present, err := e.presentToSee(ctx, p)
	if err != nil {
		return one, err
	}
	one.Cost = costs[p.record.ID]
	one.Name, one.Base, one.Iterations = p.record.Name, p.record.From(), p.record.Iterations
	if one.Head, err = p.repo.Tip(ctx, p.record.Branch); err != nil {
		return one, err
	}
	if one.Commits, err = landing.Unmerged(ctx, p.repo, p.record.Branch, p.record.From()); err != nil {
		return one, err
	}
	if len(request.Test) == 0 {
		last, err := p.lastCommand(ctx, one.Head)
		if err != nil {
			return one, err
		}
		if last != nil {
			one.Test, one.ExitCode = last.Command, &last.ExitCode
		}
	}
	var out bytes.Buffer
	if _, err := landing.Diff(ctx, p.repo, request.Dir, p.record.From(), present, []string{"--numstat", "-z", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"}, landing.Streams{Stdout: &out, Stderr: &out}); err != nil {
		return one, err
	}
	for record := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		fields := strings.SplitN(record, "\t", 3)
		if len(fields) != 3 {
			if record == "" {
				continue
			}
			return one, fault.New(fault.Internal, "cannot read what git diff printed about sandbox %q", name)
		}
		added, _ := strconv.Atoi(fields[0]) // "-" of a binary file
		deleted, _ := strconv.Atoi(fields[1])
		one.Files, one.Added, one.Deleted = one.Files+1, one.Added+added, one.Deleted+deleted
	}
	if len(request.Test) == 0 {
		return one, nil
	}
	// Last, so that nothing that the test writes counts.
	if request.Progress != nil {
		request.Progress(name)
	}
	result, err := e.Exec(ctx, ExecRequest{Dir: request.Dir, Name: name, Argv: request.Test, NoCommit: true})
	if err != nil {
		return one, err
	}
	one.Test, one.ExitCode = quoteCommand(request.Test), &result.Exit.Code
	return one, nil
}

// lastCommand is the iteration of the last command whose outcome is in the files;
// nil when there is none. After a restore or a rewind, what ran before counts only
// where the branch still has its commit.
func (p *place) lastCommand(ctx context.Context, head string) (*sandbox.Iteration, error) {
	log, err := p.store.Iterations(p.record.ID)
	if err != nil {
		return nil, err
	}
	var kept []string // commits of the branch, once something was taken back
	back := false
	for n := range slices.Backward(log) {
		switch log[n].Kind {
		case "restore", "rewind":
			if back {
				continue
			}
			out, err := p.repo.Command("rev-list", head, "^"+p.record.From(), "--").Output(ctx)
			if err != nil {
				return nil, fault.Wrap("", err, "cannot list the commits of sandbox %q", p.record.Name)
			}
			kept, back = strings.Fields(string(out)), true
		case "exec":
			if !back || slices.Contains(kept, log[n].Commit) {
				return &log[n], nil
			}
		}
	}
	return nil, nil
}
