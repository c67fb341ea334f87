package cli

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type networkOptions struct {
	console *console
	network func(ctx context.Context, dir, name string) (engine.Network, error)
	follow  func(ctx context.Context, dir, name string, report func(engine.Observation)) error
	suggest func(ctx context.Context, dir, name string) ([]engine.Suggestion, error)

	dir, name                    string
	json, following, suggestions bool
}

func newNetwork(s *session) *cobra.Command {
	o := &networkOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "network NAME",
		Short: "Show what a sandbox may reach, and what it tried to",
		Long: `Show the rules in force and every destination that programs inside have tried,
with the process, the verdict and its rule. Nothing gets out unless a rule allows
it, name lookups included.

Put a double dash before the name of a sandbox that is called test or presets, like
a command below: litterbox network -- test`,
		Example: `  litterbox network fix-login
  litterbox network fix-login --follow
  litterbox network fix-login --suggest
  litterbox network test fix-login api.example.com:443
  litterbox network presets`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.network, o.follow, o.suggest, o.dir, o.name = e.Network, e.FollowNetwork, e.SuggestNetwork, dir, args[0]
			return runNetwork(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object; with --follow one for each attempt")
	cmd.Flags().BoolVar(&o.following, "follow", false, "keep printing attempts as they happen")
	cmd.Flags().BoolVar(&o.suggestions, "suggest", false, "propose the smallest rules that would have allowed what was denied")
	exclusive(cmd, "follow", "suggest")
	cmd.AddCommand(newNetworkTest(s), newNetworkPresets(s))
	return cmd
}

func runNetwork(ctx context.Context, o *networkOptions) error {
	switch {
	case o.suggestions:
		return runSuggest(ctx, o)
	case o.following:
		return runFollow(ctx, o)
	}
	view, err := o.network(ctx, o.dir, o.name)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(view)
	}
	return o.console.printNetwork(view)
}

func runFollow(ctx context.Context, o *networkOptions) error {
	return whileRead(ctx, o.console.stdout, func(ctx context.Context) error {
		var printErr error
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		err := o.follow(ctx, o.dir, o.name, func(seen engine.Observation) {
			if o.json {
				printErr = o.console.document(seen)
			} else {
				printErr = o.console.print("%s\n", strings.Join(attempt(seen), "  "))
			}
			if printErr != nil {
				stop() // the reader is gone
			}
		})
		if err == nil {
			err = printErr
		}
		return err
	})
}

func runSuggest(ctx context.Context, o *networkOptions) error {
	suggestions, err := o.suggest(ctx, o.dir, o.name)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(list(suggestions))
	}
	if len(suggestions) == 0 {
		o.console.note("no destination was denied that a rule could allow")
		return nil
	}
	for _, suggestion := range suggestions {
		if err := o.console.print("litterbox allow %s %s\n", clean(o.name), clean(suggestion.Rule)); err != nil {
			return err
		}
		o.console.note("%s: %s", suggestion.Rule, suggestion.Why)
		if suggestion.Warning != "" {
			o.console.note("%s: %s", suggestion.Rule, suggestion.Warning)
		}
	}
	return nil
}

// printNetwork prints rules and attempts.
func (c *console) printNetwork(view engine.Network) error {
	if err := c.print("revision %d, default %s\n", view.Revision, clean(view.Default)); err != nil {
		return err
	}
	for _, rule := range view.Allow {
		if err := c.print("allow  %s%s\n", clean(rule.String()), from(rule.From)); err != nil {
			return err
		}
	}
	for _, rule := range view.Deny {
		if err := c.print("deny   %s%s\n", clean(rule.String()), from(rule.From)); err != nil {
			return err
		}
	}
	if len(view.Seen) == 0 {
		return nil
	}
	rows := [][]string{{"VERDICT", "DESTINATION", "PROCESS", "COUNT", "IN", "OUT", "LAST", "WHY"}}
	for _, seen := range view.Seen {
		rows = append(rows, append(attempt(seen)[:3], decimal(int(seen.Count)), bytesOf(seen.BytesIn), bytesOf(seen.BytesOut),
			ago(c.now(), seen.Last), clean(seen.Why)))
	}
	return c.table(rows)
}

func from(preset string) string {
	if preset == "" {
		return ""
	}
	return "  (" + clean(preset) + ")"
}

// attempt is one observation in words: verdict, destination, process, reason.
func attempt(seen engine.Observation) []string {
	host := seen.Host
	if host == "" && seen.Addr.IsValid() {
		host = seen.Addr.String()
	}
	if seen.Port != 0 {
		host = joinPort(host, seen.Port)
	}
	return []string{seen.Verdict, clean(host), clean(seen.Process), clean(seen.Why)}
}

func joinPort(host string, port uint16) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(addr, port).String()
	}
	return host + ":" + strconv.Itoa(int(port))
}

// bytesOf writes a count of bytes as people do.
func bytesOf(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + "B"
	}
	value, units := float64(n)/unit, "KMGT"
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + units[:1]
}

func newNetworkTest(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "test NAME HOST[:PORT]",
		Short:             "Explain what the rules say of a destination, without going there",
		Long:              "Explain what the rules in force say of a destination. Nothing is dialled and no\nname is resolved.",
		Example:           "  litterbox network test fix-login api.example.com:443",
		Args:              hiding(wantArgs(2, 2)),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			explanation, err := e.ExplainNetwork(ctx, dir, args[0], args[1])
			if err != nil {
				return err
			}
			if asJSON {
				return s.console.document(explanation)
			}
			verdict := "denied"
			if explanation.Allowed {
				verdict = "allowed"
			}
			if err := s.console.print("%s: %s\n", verdict, clean(explanation.Why)); err != nil {
				return err
			}
			s.console.notes(explanation.Notes)
			if explanation.Hint != "" {
				s.console.note("it would be allowed by: litterbox allow %s %s", args[0], explanation.Hint)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the verdict as one JSON object")
	return cmd
}

func newNetworkPresets(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "presets",
		Short: "List named sets of rules and what each means on this machine",
		Long: `List the presets, such as preset:npm, that can stand in a list of rules. Those of
package managers are read from the tools' own configuration, mirrors included.`,
		Example:           "  litterbox network presets\n  litterbox allow fix-login preset:go",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, _ string, _ []string) error {
			presets := e.Presets(ctx)
			if asJSON {
				return s.console.document(list(presets))
			}
			rows := [][]string{{"PRESET", "MEANS HERE", "WHAT FOR"}}
			for _, preset := range presets {
				means := clean(strings.Join(preset.Rules, " "))
				if preset.Problem != "" {
					means = "unusable: " + clean(preset.Problem)
				}
				rows = append(rows, []string{"preset:" + clean(preset.Name), means, clean(preset.Meaning)})
			}
			return s.console.table(rows)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// hiding says, when a command is used wrongly, how to reach a sandbox of its name.
func hiding(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var usage *fault.Error
		if len(args) == 0 && errors.As(err, &usage) {
			return usage.WithHint("for a sandbox called %s: litterbox network -- %s", cmd.Name(), cmd.Name())
		}
		return err
	}
}

type policyOptions struct {
	console *console
	change  func(context.Context, engine.PolicyRequest) (engine.Network, error)
	request engine.PolicyRequest
	json    bool
}

func newAllow(s *session) *cobra.Command {
	return newPolicy(s, false, &cobra.Command{
		Use:   "allow NAME RULE...",
		Short: "Let a sandbox reach hosts, at once",
		Long: `Let a sandbox reach hosts: a new revision of its rules, in force at once. A rule is
a host, *.host, an address or a range, with :PORT for other ports than 80 and 443,
or preset:NAME. --save also writes it to .litterbox.toml for future sandboxes.`,
		Example: `  litterbox allow fix-login api.example.com '*.example.org:443' github.com:22
  litterbox allow fix-login preset:npm --save`,
	})
}

func newDeny(s *session) *cobra.Command {
	return newPolicy(s, true, &cobra.Command{
		Use:   "deny NAME RULE...",
		Short: "Keep a sandbox from hosts, at once",
		Long: `Deny a sandbox hosts that its rules would allow: a new revision, in force at once,
also for open connections. Deny rules always win.`,
		Example: "  litterbox deny fix-login telemetry.example.com",
	})
}

func newPolicy(s *session, deny bool, cmd *cobra.Command) *cobra.Command {
	o := &policyOptions{console: s.console}
	cmd.Args = wantArgs(2, -1)
	cmd.ValidArgsFunction = s.thenComplete(completeRule)
	cmd.RunE = s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
		o.change = e.ChangePolicy
		o.request = engine.PolicyRequest{Dir: dir, Name: args[0], Rules: args[1:], Deny: deny, Save: o.request.Save, Pause: o.request.Pause}
		return runPolicy(ctx, o)
	})
	cmd.Flags().BoolVar(&o.request.Save, "save", false, "also write the rules to .litterbox.toml")
	cmd.Flags().BoolVar(&o.request.Pause, "pause", false, "pause the sandbox while the rules change")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the rules now in force as one JSON object")
	return cmd
}

// ofLoopback reports whether a rule names loopback, by its name or an address.
func ofLoopback(rule string) bool {
	host, _, err := net.SplitHostPort(rule)
	if err != nil {
		host = strings.Trim(rule, "[]")
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

func runPolicy(ctx context.Context, o *policyOptions) error {
	view, err := o.change(ctx, o.request)
	if err != nil {
		return fault.Wrap("", err, "cannot change the rules of %q", o.request.Name)
	}
	if o.json {
		return o.console.document(view)
	}
	view.Seen = nil
	if at := slices.IndexFunc(o.request.Rules, ofLoopback); at >= 0 && !o.request.Deny {
		o.console.note("%s inside is the sandbox itself: to reach a server of this machine, allow an address of its interfaces", clean(o.request.Rules[at]))
	}
	if o.request.Save {
		o.console.note("written to .litterbox.toml; if you had not trusted that file before: litterbox trust")
	}
	return o.console.printNetwork(view)
}
