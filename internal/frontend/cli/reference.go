package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Reference is the reference page of the commands, in Markdown:
// docs/reference/commands.md. It is made from the command tree itself; nothing
// at run time needs it.
func Reference() string {
	root := Tree()
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- Made by: go test ./internal/frontend/cli -run Reference -update -->\n\n")
	b.WriteString("Every page below is what `litterbox COMMAND --help` prints.\n")
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n- %s:", group.Title)
		separator := " "
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && cmd.IsAvailableCommand() {
				fmt.Fprintf(&b, "%s[`%s`](#%s)", separator, cmd.Name(), headingAnchor(cmd))
				separator = " "
			}
		}
	}
	b.WriteString("\n\n## Exit codes\n\n")
	b.WriteString("`exec`, `run` and `shell` end with the exit code of their command: 128+N when signal N ended it, ")
	fmt.Fprintf(&b, "%d when litterbox itself failed. `diff`, `apply` and `merge` end with git's own exit code once git has run. Elsewhere:\n\n", exitOwnFailure)
	b.WriteString("| code | kind | when |\n|---|---|---|\n| 0 | | done |\n")
	for _, row := range exitTable() {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", row.code, row.kind, row.when)
	}
	fmt.Fprintf(&b, "| %d | | the reader of the output closed it |\n", exitBrokenPipe)

	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", group.Title)
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID {
				writePage(&b, cmd)
			}
		}
	}
	writeOrigins(&b, root)
	return b.String()
}

// writePage writes the help page of a command and of those below it.
func writePage(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.IsAvailableCommand() {
		return
	}
	var page bytes.Buffer
	cmd.SetOut(&page)
	writeHelp(cmd, nil)
	fmt.Fprintf(b, "\n### %s\n\n%s.\n\n```text\n%s```\n", cmd.CommandPath(), cmd.Short, page.String())
	for _, sub := range cmd.Commands() {
		writePage(b, sub)
	}
}

// headingAnchor is the name that Markdown viewers give to a command's heading.
func headingAnchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// writeOrigins writes where the commands of the four designs went.
func writeOrigins(b *strings.Builder, root *cobra.Command) {
	b.WriteString(`
## Where the commands of the designs are

litterbox unites four designs. This is every command and tool that they name, and what does its job here. *Planned* means that this version does not have it; where only flags are missing, they are named.
`)
	design := ""
	for _, row := range origins() {
		if row.design != design {
			design = row.design
			fmt.Fprintf(b, "\n### From %s\n\n| there | here | state | note |\n|---|---|---|---|\n", design)
		}
		here := "–"
		if row.here != "" {
			here = "`" + row.here + "`"
		}
		state, note := row.state(root), row.note
		if state == "planned" && row.until != "" {
			note = "until then " + row.until
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", row.there, here, state, note)
	}
}

// state looks into the command tree, so that the table cannot promise a missing
// command, nor call an existing one planned.
func (o origin) state(root *cobra.Command) string {
	if o.here == "" {
		return "left out"
	}
	words := strings.Fields(o.here)[1:] // without litterbox
	cmd := root
	var missing []string
	for _, word := range words {
		if word == "--" {
			break // the rest is another program's
		}
		if name, ok := strings.CutPrefix(word, "--"); ok {
			if cmd.Flag(name) == nil {
				missing = append(missing, word)
			}
			continue
		}
		if strings.HasPrefix(word, "-") || strings.ToLower(word) != word {
			continue // -C, which every command has, or an argument
		}
		next := below(cmd, word)
		if next == nil {
			return "planned"
		}
		cmd = next
	}
	if len(missing) > 0 {
		return "planned: `" + strings.Join(missing, " ") + "`"
	}
	return "yes"
}

func below(cmd *cobra.Command, name string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}
