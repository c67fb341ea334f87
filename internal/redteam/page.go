package redteam

import (
	"fmt"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// Page is docs/reference/redteam.md, made from the table itself; nothing at run
// time needs it.
func Page() string {
	var b strings.Builder
	b.WriteString(`# What litterbox redteam tries

<!-- Made by: go test ./internal/redteam -update -->

` + "`litterbox redteam`" + ` attacks sandboxes on your own machine, so that you need not believe [what is promised](../security.md). It makes throwaway sandboxes in a throwaway repository, with a home and a state directory of their own below ` + "`$TMPDIR`" + `, and deletes all of it at the end, also after Ctrl-C. It uses no network outside of the machine, less than 400 MiB of memory and 400 MiB of disk at a time, and about half a minute.

Each attack runs twice: in a sandbox, where it must fail, and as a control where nothing is in the way, where it must succeed. A control runs on the machine itself, in the throwaway directories; where that would change the machine, in namespaces of its own (unshare), or in a sandbox that has no such limit or rule.

| verdict | meaning |
|---|---|
| ` + "`closed`" + ` | the attack failed, and its control succeeded |
| ` + "`OPEN`" + ` | the attack succeeded; report it, with the output of ` + "`litterbox redteam --json`" + ` and ` + "`litterbox doctor --json`" + ` |
| ` + "`skipped`" + ` | it shows nothing here: this machine or driver lacks what it needs, or its control did not succeed; the reason is said |

With ` + "`--driver docker`, `--driver podman` or `--machine NAME`" + ` the sandboxes are in a container or on that host. Controls stay on this machine. Attacks on files of this machine are skipped: they are not where the sandbox is. ` + "`--base-image`" + ` names the image of the container, which is removed at the end with its volume; a host stays as it is, but for the program that litterbox has there.

The exit code is 1 when anything is open, and 0 when nothing is, whatever was skipped. With ` + "`--json`" + ` it prints one object: ` + "`driver`, `isolation`, `attacks`, `closed`, `open`, `skipped`" + `; each of the ` + "`attacks`" + ` has ` + "`class`, `attack`, `escape` (what an escape would show), `seen` (in the sandbox), `control` (where nothing is in the way), `verdict`, `reason`, `defence`" + ` (the file that stands in the way).

A closed attack shows that this attack fails on this machine today. It does not show that there is no other; the [tests](../security.md) try more.
`)
	attacks := Attacks()
	for _, text := range threat.Classes() {
		if !slices.Contains(Classes(), text.Class) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| attack | an escape would show | defence |\n|---|---|---|\n", text.Class, text.About)
		for _, a := range attacks {
			if a.Class == text.Class {
				fmt.Fprintf(&b, "| %s | %s | `%s` |\n", a.name, a.Escape, strings.Join(a.Defence, "`, `"))
			}
		}
		b.WriteString("\nReferences:\n\n")
		for _, l := range text.Links {
			fmt.Fprintf(&b, "- [%s](%s): %s\n", l.Name, l.URL, l.What)
		}
	}
	return b.String()
}
