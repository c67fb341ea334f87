package config

import (
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// Document is the reference page of the configuration, in Markdown:
// docs/reference/configuration.md. It is made from the schema, so that it
// cannot name a key that does nothing, or leave one out.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Made by: go test ./internal/config -run Document -update -->

Two files are read, both in [TOML](https://toml.io):

- ` + "`" + RepositoryFile + "`" + ` at the top of the repository, in your own checkout; never the one in a sandbox. It came with a clone, so whatever reaches the host or opens the network takes effect only after ` + "`litterbox trust`" + `, which holds for exactly that content.
- ` + "`$XDG_CONFIG_HOME/litterbox/config.toml`" + `, or ` + "`~/.config/litterbox/config.toml`" + `: your own, always trusted. Every key is allowed there too; the repository's value takes precedence.

A key that is unknown, has the wrong type or is not supported yet is an error with line and column, never a line that does nothing. A symbolic link in place of the repository's file is refused, and so is a file larger than ` + fmt.Sprintf("%d KiB", MaxSize>>10) + `.

` + "```toml" + `
durability = "strict"

[container]
setup-command = ["npm", "ci"]
env = { NODE_ENV = "development" }

[network]
allow = ["api.example.com", "github.com:22", "preset:npm"]
` + "```" + `

## Keys

| key | type | from a repository |
|---|---|---|
`)
	for _, key := range schema() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", key.Name, anchor(key.Name), key.Type, key.trust())
	}
	for _, key := range schema() {
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", key.Name, key.Meaning)
	}

	b.WriteString(`
## Whose limits count

Your own file sets what every sandbox gets, and the most that a repository may ask for. A repository's value applies where it is stricter than yours, or than the default if you set none. More than the default applies after ` + "`litterbox trust`" + `, and never more than your own file allows. ` + "`litterbox limits NAME`" + ` shows what is in force, where it comes from and who enforces it, and changes it for one sandbox.
`)
	b.WriteString("\n## Network rules\n\nA rule in `network.allow` or `network.deny` is one of these. Deny wins, whatever the order.\n\n| rule | what it matches |\n|---|---|\n")
	for _, row := range ruleRows() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", row.rule, row.names)
	}
	b.WriteString(`
In a deny list a missing port means every port, and a missing protocol every protocol. In an allow list, addresses of 198.18.0.0/15 and fd6c:6974:7465:7262::/64 are refused: inside they stand for names, which are what can be allowed. A name that resolves to a private, loopback, link-local or metadata address is refused unless that address has a rule of its own. The networks of this machine's interfaces count as private too, including routers and neighbours with public addresses: only a rule that names the address, or a network no wider than theirs, opens them. Broadcast addresses of these networks stay closed whatever the rules say. An IPv6 address that stands for an IPv4 address (NAT64, 6to4, Teredo, ISATAP, mapped, compatible) is judged by both.

With ` + "`network.default = \"allow\"`" + `, a connection on port 443 or 80 that goes straight to an address is treated as one to the host that it asks for, by TLS server name (SNI) or HTTP Host, and is connected to where that name leads. A connection that asks for no host is refused while ` + "`network.deny`" + ` names hosts, unless its address has a rule. On other ports, an address that a denied host name resolves to is refused; hosts below a wildcard cannot be found by their addresses.

## Not yet

These names are part of the design, and are refused until a version supports them:

`)
	for _, path := range planned() {
		fmt.Fprintf(&b, "- `%s`\n", dotted(path))
	}
	return b.String()
}

// trust is the cell about a key in the column "from a repository".
func (k key) trust() string {
	switch {
	case k.Own:
		return "never"
	case k.Restricts:
		return "where it is stricter: " + k.Untrusted
	case !k.NeedsTrust:
		return "yes: " + k.Untrusted
	case k.TrustFor != "":
		return fmt.Sprintf("`%q` after `litterbox trust`; otherwise yes: %s", k.TrustFor, k.Untrusted)
	}
	return "after `litterbox trust`"
}

// anchor is the name that Markdown viewers give to a heading of code.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), ".", "")
}

type ruleRow struct{ rule, names string }

// ruleRows explains the syntax that egress.ParseRule reads.
func ruleRows() []ruleRow {
	return []ruleRow{
		{"api.example.com", "that host, ports 443 and 80; TLS and HTTP must be meant for it"},
		{"*.example.org:443", "every name below it, one or more labels; not `example.org` itself"},
		{"github.com:22", "any protocol over TCP on that port"},
		{"example.com:*", "every port"},
		{"10.1.2.3:5432", "an address"},
		{"10.0.0.0/8", "a network; `[2001:db8::/32]:443` with a port"},
		{egress.TCP + "://ssh.example.com:443", "TCP that is not inspected"},
		{egress.UDP + "://time.example.com:123", "UDP, which needs a port"},
		{egress.HTTPS + "://example.com/public/", "only requests below that path"},
		{"GET,HEAD " + egress.HTTPS + "://api.example.com/repos/me/", "only those methods there"},
		{"preset:npm", "the registries of a package manager, from its own configuration; `litterbox network presets` lists them"},
	}
}
