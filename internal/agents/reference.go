package agents

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// Reference is the reference page of the clients, in Markdown:
// docs/reference/agents.md. It is made from the table of clients; nothing at run
// time needs it.
func Reference() string {
	h := Host{Home: "~", Env: func(string) string { return "" }, System: "linux"}
	// A path that is not absolute is not taken from the environment.
	show := func(path string) string { return "`" + path + "`" }
	var b strings.Builder
	b.WriteString(`# Agents

<!-- Made by: go test ./internal/agents -run Reference -update -->

` + "`litterbox agent install NAME`" + ` writes litterbox into the list of MCP servers of an agent's client, and ` + "`litterbox agent uninstall NAME`" + ` takes it out. [commands.md](commands.md#litterbox-agent) has the flags.

| name | client | for the project | for you (` + "`--scope user`" + `) | entry |
|---|---|---|---|---|
`)
	for _, c := range Clients() {
		files := func(s Scope) string {
			var shown []string
			for _, path := range c.config(h, s) {
				shown = append(shown, show(path))
			}
			if len(shown) == 0 {
				return "it has none"
			}
			return strings.Join(shown, ", else ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` |\n", c.Name, c.Title, files(Project), files(User), strings.Join(c.path, "."))
	}
	b.WriteString(`
Without ` + "`--scope`" + ` the project's file is written, where the client has one. Such a file belongs to the repository: commit it, and everyone who works there gets the entry; it names the program ` + "`litterbox`" + `, which each of them needs on their ` + "`PATH`" + `. Files move with ` + "`CLAUDE_CONFIG_DIR`, `CODEX_HOME` and `XDG_CONFIG_HOME`" + `; on macOS the user's file of VS Code is below ` + "`~/Library/Application Support/Code`" + `.

## What --exclusive writes

Rules alone isolate nothing: a model that has a shell will use it. ` + "`--exclusive`" + ` denies a client's own tools in its own settings, and allows those of litterbox without a question.

| name | file | setting |
|---|---|---|
`)
	for _, c := range Clients() {
		if c.exclusive == nil {
			fmt.Fprintf(&b, "| `%s` | – | unsupported (exit code 6): %s |\n", c.Name, c.without)
			continue
		}
		for _, s := range c.exclusive(h, Project) {
			file, value := s.file, any(s.items)
			if file == "" {
				file = c.config(h, Project)[0]
			}
			if s.items == nil {
				value = s.value
			}
			if s.whole != "" {
				fmt.Fprintf(&b, "| `%s` | %s | a rule that denies %s |\n", c.Name, show(file), "`"+strings.Join(geminiTools(), "`, `")+"`")
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s | `%s`: `%s` |\n", c.Name, show(file), strings.Join(s.path, "."), plainText(value))
		}
		for _, field := range c.granted {
			fmt.Fprintf(&b, "| `%s` | %s | `%s.%s`: `%s` |\n", c.Name, show(c.config(h, Project)[0]), strings.Join(c.path, "."), field.Key, plainText(field.Value))
		}
	}
	b.WriteString(`
- Reading is not denied: the model can still look at the files of your checkout, and at what is not committed.
- Codex and Gemini CLI read a project's settings, and so what they deny, only in folders that you trust.
- Codex started with ` + "`--dangerously-bypass-approvals-and-sandbox`" + ` (` + "`--yolo`" + `) has no sandbox of its own and still offers its model ` + "`apply_patch`" + `, which then writes to your checkout: Codex has no setting that takes the tool away. Start it without that flag; litterbox's tools need no approval. Root can forbid the flag on a machine, for every repository, with ` + "`" + strings.TrimSpace(CodexRequirements) + "`" + ` in ` + "`/etc/codex/requirements.toml`" + `: Codex then does not start with it.
- A program that can write these files can remove the denial. A sandbox cannot; you and your other programs can.
- With ` + "`--scope user`" + ` the denial holds wherever you use the client.
- A setting of yours with another value is not replaced without ` + "`--force`" + `; ` + "`uninstall`" + ` puts it back.

## What --rules writes

A short text for the model, between two markers, at the end of a file that the client reads. It stays while another client that reads the same file is installed.

| name | for the project | for you |
|---|---|---|
`)
	for _, c := range Clients() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, orNone(c.rules(h, Project), show), orNone(c.rules(h, User), show))
	}
	b.WriteString("\n```markdown\n" + rulesBegin + "\n" + Rules + rulesEnd + "\n```\n")
	b.WriteString(`
## How files are changed

- Everything else in a file stays byte for byte: comments, order, trailing commas, line endings, a missing final newline. ` + "`--print`" + ` shows the lines that would be added and removed, and writes nothing.
- ` + "`uninstall`" + ` restores the original bytes, and removes a file and directories that ` + "`install`" + ` made. From a file that has changed since, it removes what litterbox wrote and leaves the rest. What was written is recorded in the state directory, below ` + "`agents`" + `.
- All files are read and all changes planned before the first is written, and each file is replaced atomically. A file that cannot be parsed is an error with its line, and nothing is written.
- An entry ` + "`litterbox`" + ` that another program made, or that was changed by hand, is not replaced or removed without ` + "`--force`" + `.
- A symbolic link stays, and what it leads to changes; for the project only within the repository, and not into its ` + "`.git`" + `. A file that belongs to another user is not touched; root keeps owner and mode.
`)
	return b.String()
}

func orNone(path string, show func(string) string) string {
	if path == "" {
		return "none"
	}
	return show(path)
}

func plainText(value any) string {
	text, err := json.Marshal(patch.Plain(value))
	if err != nil {
		return ""
	}
	return string(text)
}
