package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// setUp runs container.setup-command once; its output is shown while it runs, or
// the end of it when it fails, and its changes are a commit of their own.
func (e *Engine) setUp(ctx context.Context, p *place, request CreateRequest) error {
	var output tail
	var to io.Writer = &output
	if request.Output != nil {
		to = io.MultiWriter(&output, request.Output)
		fmt.Fprintf(request.Output, "setting up %s: %s\n", p.record.Name, quoteCommand(p.config.Container.SetupCommand))
	}
	began := time.Now()
	result, err := e.execute(ctx, p, ExecRequest{
		Name: p.record.Name, Argv: p.config.Container.SetupCommand, Kind: "setup", Message: "container.setup-command",
		Streams: Streams{Stdout: to, Stderr: to},
	})
	if ctx.Err() != nil {
		return fault.New(fault.Canceled, "canceled: sandbox %q was not created; container.setup-command was ended after %s",
			p.record.Name, time.Since(began).Round(time.Second))
	}
	if err != nil {
		return err
	}
	if result.Exit.Code == 0 {
		return nil
	}
	said := ""
	if request.Output == nil {
		said = "; it said:\n" + strings.TrimRight(output.String(), "\n")
	}
	refused, rules := e.refusedInSetUp(ctx, p, began)
	hint := "correct container.setup-command, then litterbox create " + p.record.Name
	if len(rules) > 0 {
		hint = e.opening(ctx, p, rules) + ", then litterbox create " + p.record.Name
	}
	return fault.New(fault.Invalid, "cannot set up sandbox %q: container.setup-command exited %d%s%s",
		p.record.Name, result.Exit.Code, said, refused).WithHint("%s", hint)
}

// refusedNamed is how many refused destinations a failure names.
const refusedNamed = 5

// refusedInSetUp lists what the network refused since a moment, and values of
// network.allow that would open it.
func (e *Engine) refusedInSetUp(ctx context.Context, p *place, since time.Time) (text string, rules []string) {
	refused, err := e.refusedSince(ctx, p, since)
	if err != nil {
		return "\nwhat the network refused meanwhile is not known: " + err.Error(), nil
	}
	var named []string
	known := map[string]bool{}
	for _, one := range refused {
		if !known[one.Destination] {
			known[one.Destination] = true
			named = append(named, one.Destination)
		}
		rule := cmp.Or(one.Preset, one.Rule)
		if rule != "" && !known["rule "+rule] {
			known["rule "+rule] = true
			rules = append(rules, rule)
		}
	}
	if len(named) == 0 {
		return "", nil
	}
	more := ""
	if n := len(named) - refusedNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
		named = named[:refusedNamed]
	}
	return "\nthe network refused " + strings.Join(named, ", ") + more, rules[:min(len(rules), refusedNamed)]
}

// opening says how the next set-up gets rules for the network. Those that the
// repository's file has, and that do not count without trust, wait for that alone.
func (e *Engine) opening(ctx context.Context, p *place, rules []string) string {
	missing := slices.Clone(rules)
	if found, err := e.settings(ctx, p.record.Repository, p.record.GitDir); err == nil && slices.Contains(found.withheld, "network.allow") {
		if theirs, err := config.Load(p.record.Repository); err == nil {
			missing = slices.DeleteFunc(missing, func(rule string) bool { return slices.Contains(theirs.Network.Allow, rule) })
		}
	}
	if len(missing) == 0 {
		return "litterbox trust"
	}
	var quoted []string
	for _, rule := range missing {
		quoted = append(quoted, fmt.Sprintf("%q", rule))
	}
	return fmt.Sprintf("add %s to network.allow in %s, litterbox trust", strings.Join(quoted, ", "), config.RepositoryFile)
}

// tail keeps the last bytes of an output.
type tail struct{ kept []byte }

const tailSize = 16 << 10

func (t *tail) Write(data []byte) (int, error) {
	t.kept = append(t.kept, data...)
	if len(t.kept) > tailSize {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailSize:]...)
	}
	return len(data), nil
}

func (t *tail) String() string { return string(t.kept) }
