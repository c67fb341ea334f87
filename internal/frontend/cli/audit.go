package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type auditOptions struct {
	console *console
	audit   func(context.Context, engine.AuditQuery) (iter.Seq2[engine.AuditEntry, error], error)
	verify  func(context.Context) (engine.Verification, error)

	query engine.AuditQuery
	since string
	json  bool
}

func newAudit(s *session) *cobra.Command {
	o := &auditOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "audit [NAME]",
		Short: "Show who asked for what, and what came of it",
		Long: `Show the audit log: every tool call of an agent and every command that changed
something, oldest first. Secrets are redacted, and file contents appear as hashes.
With NAME, show only the entries of that sandbox.`,
		Example: `  litterbox audit fix-login
  litterbox audit --since 24h --json
  litterbox audit verify`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.audit, o.query.Dir = e.Audit, dir
			if len(args) > 0 {
				o.query.Name = args[0]
			}
			return runAudit(ctx, o)
		}),
	}
	cmd.Flags().StringVar(&o.since, "since", "", "only what is newer than `AGE` (90m, 24h, 7d) or a date (2026-01-31, RFC 3339)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object for each entry")
	cmd.AddCommand(newAuditVerify(s))
	return cmd
}

func runAudit(ctx context.Context, o *auditOptions) error {
	if o.since != "" {
		since, ok := moment(o.console.now(), o.since)
		if !ok {
			return fault.New(fault.Invalid, "cannot read --since %q", o.since).WithHint("litterbox audit --since 24h")
		}
		o.query.Since = since
	}
	entries, err := o.audit(ctx, o.query)
	if err != nil {
		return err
	}
	rows := [][]string{{"ENTRY", "WHEN", "WHO", "SANDBOX", "ACTION", "RESULT", "COMMIT"}}
	open := map[uint64]int{} // row by call
	for entry, err := range entries {
		if err != nil {
			return err
		}
		if o.json {
			if err := o.console.document(auditDocument(entry)); err != nil {
				return err
			}
			continue
		}
		switch at, ok := open[entry.Call]; {
		case entry.Event == "result" && ok:
			rows[at][5], rows[at][6] = auditResult(entry), short(entry.Commit)
		default:
			open[entry.Seq] = len(rows)
			rows = append(rows, auditRow(entry))
		}
	}
	if o.json {
		return nil
	}
	if len(rows) == 1 {
		o.console.note("the audit log has no such entry")
		return nil
	}
	return o.console.table(rows)
}

// auditDocument is an entry with its hash, which the log has on the line too.
func auditDocument(entry engine.AuditEntry) any {
	return struct {
		Hash string `json:"hash"`
		engine.AuditEntry
	}{entry.Hash, entry}
}

func auditRow(e engine.AuditEntry) []string {
	who := ""
	if e.Who != nil {
		who = e.Who.User
		if e.Who.Via != "cli" {
			who = strings.TrimSpace(e.Who.Client + " " + e.Who.Version)
		}
	}
	action, result := e.Action, "…"
	switch e.Event {
	case "read":
		result = auditResult(e)
	case "torn", "gap":
		action, result = "("+e.Event+")", "-"
	case "result":
		result = auditResult(e)
	}
	if text := argumentsText(e.Arguments); text != "" {
		action += " " + text
	}
	const width = 60
	if runes := []rune(clean(action)); len(runes) > width {
		action = string(runes[:width-1]) + "…"
	}
	return []string{
		strconv.FormatUint(e.Seq, 10), e.Time.Local().Format("2006-01-02 15:04:05"), who, e.Sandbox, action, result, short(e.Commit),
	}
}

// argumentsText is the arguments on one line: the telling one, or all.
func argumentsText(arguments map[string]any) string {
	if purpose, ok := arguments["for"].(string); ok {
		rest := maps.Clone(arguments)
		delete(rest, "for")
		return argumentsText(rest) + " for " + purpose
	}
	for _, key := range []string{"command", "path", "rules", "name"} {
		switch value := arguments[key].(type) {
		case string:
			return value
		case []any:
			return strings.Trim(fmt.Sprint(value), "[]")
		}
	}
	keys := []string{}
	for key := range arguments {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for i, key := range keys {
		value, err := json.Marshal(arguments[key])
		if err != nil {
			continue
		}
		keys[i] = key + "=" + string(value)
	}
	return strings.Join(keys, " ")
}

func auditResult(e engine.AuditEntry) string {
	switch {
	case e.Outcome != "ok":
		return e.Outcome
	case e.ExitCode != nil:
		return "exit " + strconv.Itoa(*e.ExitCode)
	}
	return "ok"
}

func newAuditVerify(s *session) *cobra.Command {
	o := &auditOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that the audit log is whole",
		Long: `Check the chain of the audit log, and the commits of sandboxes that refer to its
entries. The report names entries that were changed, removed, reordered or cut
off, and what the log cannot prove. The exit code is 5 when something is wrong.`,
		Example:           "  litterbox audit verify --json",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, _ string, _ []string) error {
			o.verify = e.VerifyAudit
			return runAuditVerify(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func runAuditVerify(ctx context.Context, o *auditOptions) error {
	v, err := o.verify(ctx)
	if err != nil {
		return err
	}
	if o.json {
		if err := o.console.document(v); err != nil {
			return err
		}
	} else if err := printVerification(o.console, v); err != nil {
		return err
	}
	if !v.Intact {
		return fault.New(fault.Conflict, "the audit log was changed").
			WithHint("keep a copy of it; the commits of the sandboxes hold what was done")
	}
	return nil
}

func printVerification(c *console, v engine.Verification) error {
	for _, finding := range v.Findings {
		where := ""
		if finding.Line > 0 {
			where = "line " + strconv.Itoa(finding.Line) + ": "
		}
		if err := c.print("%s: %s%s\n", finding.Kind, where, clean(finding.Text)); err != nil {
			return err
		}
	}
	verdict := "whole"
	if !v.Intact {
		verdict = "damaged"
	}
	if err := c.print("%s: %s, named by %s\n", verdict, counted(v.Entries, "entry", "entries"), counted(v.Commits, "commit", "commits")); err != nil {
		return err
	}
	if v.Open > 0 {
		c.note("%d calls have no result: they are still running or were cut off by a crash", v.Open)
	}
	for _, text := range v.Unproven {
		c.note("not shown: %s", text)
	}
	return nil
}
