package cli

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// cobraExclusive is cobra's own annotation of flags that exclude each other.
const cobraExclusive = "cobra_annotation_mutually_exclusive"

// Two flags that exclude each other are a usage error that names both and says
// what to type, in every command that has such flags.
func TestFlagsThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	groups := map[string]bool{} // command and flags
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(flag *pflag.Flag) {
			for _, group := range flag.Annotations[cobraExclusive] {
				groups[strings.TrimPrefix(c.CommandPath(), "litterbox ")+" : "+group] = true
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(quietSession(), ""))
	if len(groups) < 8 {
		t.Errorf("groups are missing: %d", len(groups))
	}
	for group := range maps.Keys(groups) {
		command, flags, _ := strings.Cut(group, " : ")
		names := strings.Fields(flags)
		wantCode := 2
		if found, _, err := newRoot(quietSession(), "").Find(strings.Fields(command)); err == nil && passesThrough(found) {
			wantCode = exitOwnFailure
		}
		args := strings.Fields(command)
		for _, name := range names {
			args = append(args, "--"+name+"=true")
		}
		var said bytes.Buffer
		c := newConsole(strings.NewReader(""), &said, &said, func(string) string { return "" })
		code := (&session{console: c}).run(t.Context(), args)
		want := "litterbox: cannot run litterbox " + command + ": --" + names[0] + " and --" + names[1] +
			" exclude each other\n  try: litterbox " + command + " --help\n"
		if code != wantCode || said.String() != want {
			t.Errorf("%q ends with %d: %q, want %d: %q", args, code, said.String(), wantCode, want)
		}
	}
}
