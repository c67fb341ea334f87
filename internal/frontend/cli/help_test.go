package cli_test

import (
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

func TestHelpPages(t *testing.T) {
	for _, name := range cli.Commands() {
		file, args := "litterbox", []string{"--help"}
		if name != "" {
			file, args = name, []string{name, "--help"}
		}
		if name == "exit-codes" {
			args = []string{"help", "exit-codes"} // a topic, not a command
		}
		t.Run(file, func(t *testing.T) {
			got := lb(t, nil, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Fatalf("exit code %d, stderr %q", got.Code, got.Stderr)
			}
			golden(t, "help/"+file+".txt", got.Stdout)
			for line := range strings.Lines(got.Stdout) {
				if len(line) > 101 {
					t.Errorf("wider than 100 columns: %q", line)
				}
			}
			if name != "exit-codes" && !strings.Contains(cli.CommandExample(name), "  litterbox ") {
				t.Error("there is no example")
			}
		})
	}
}

func TestHelpIsReachedInEveryWay(t *testing.T) {
	page := func(args ...string) string {
		got := lb(t, nil, "", args...)
		if got.Code != 0 || got.Stderr != "" {
			t.Fatalf("%q: exit code %d, stderr %q", args, got.Code, got.Stderr)
		}
		return got.Stdout
	}
	for _, name := range []string{"exec", "apply", "diff", "list"} {
		want := page(name, "--help")
		for _, args := range [][]string{{"help", name}, {name, "-h"}, {"-C", "/", name, "--help"}} {
			if got := page(args...); got != want {
				t.Errorf("%q shows another page:\n%s", args, got)
			}
		}
	}
	if got, want := page("exec", "fix", "--help"), page("help", "exec"); got != want {
		t.Errorf("after NAME another page:\n%s", got)
	}
	if got, want := page(), page("help"); got != want {
		t.Errorf("no arguments show another page:\n%s", got)
	}
}

func TestUnknownCommandSuggestsOne(t *testing.T) {
	wantOutcome(t, lb(t, nil, "", "crate", "fix"), outcome{
		2, "", "litterbox: cannot run \"crate\": there is no such command\n  try: litterbox create\n",
	})
	wantOutcome(t, lb(t, nil, "", "xyzzy"), outcome{
		2, "", "litterbox: cannot run \"xyzzy\": there is no such command\n  try: litterbox help\n",
	})
	// Two letters are swapped; two others make another word.
	for typed, hint := range map[string]string{"mrege": "merge", "lst": "list", "reate": "create", "nope": "help", "": "help"} {
		if got, want := lb(t, nil, "", typed), "  try: litterbox "+hint+"\n"; got.Code != 2 || !strings.HasSuffix(got.Stderr, want) {
			t.Errorf("%q: %d, %q, want %q", typed, got.Code, got.Stderr, want)
		}
	}
}

func TestUnknownFlag(t *testing.T) {
	wantOutcome(t, lb(t, nil, "", "list", "--jsn"), outcome{
		2, "", "litterbox: cannot read the flags of litterbox list: unknown flag: --jsn\n  try: litterbox list --help\n",
	})
	// The command's own surface says 125 for the same mistake.
	wantOutcome(t, lb(t, nil, "", "exec", "--jsn", "fix", "--", "true"), outcome{
		125, "", "litterbox: cannot read the flags of litterbox exec: unknown flag: --jsn\n  try: litterbox exec --help\n",
	})
}

// A value of the wrong kind is named with the kind that is wanted.
func TestWrongValueOfAFlag(t *testing.T) {
	for line, want := range map[string]string{
		"log fix -n many":                 `--number must be a whole number, not "many"`,
		"exec fix --timeout soon -- true": `--timeout must be a duration such as 90s or 5m, not "soon"`,
		"list --json=perhaps":             `--json must be true or false, not "perhaps"`,
	} {
		got := lb(t, nil, "", strings.Fields(line)...)
		if !strings.Contains(got.Stderr, ": "+want+"\n") {
			t.Errorf("%s: %q, want %q", line, got.Stderr, want)
		}
	}
}

func TestWrongNumberOfArguments(t *testing.T) {
	wantOutcome(t, lb(t, nil, "", "rename", "fix"), outcome{
		2, "", "litterbox: cannot run litterbox rename: 1 argument where its usage is \"litterbox rename NAME NEW [flags]\"\n  try: litterbox rename --help\n",
	})
	wantOutcome(t, lb(t, nil, "", "install", "fix"), outcome{
		2, "", "litterbox: cannot run litterbox install: 1 argument where its usage is \"litterbox install NAME PACKAGE... [flags]\"\n  try: litterbox install --help\n",
	})
}
