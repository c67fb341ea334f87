package cli

import (
	"io"
	"testing"
)

func quietSession() *session {
	return &session{console: newConsole(nil, io.Discard, io.Discard, func(string) string { return "" })}
}

// A name in the list that is not the command's own would make the command
// unknown.
func TestCommandsHaveTheirNames(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		if made := c.build(quietSession()); made.Name() != c.name {
			t.Errorf("the list says %q, the command %q", c.name, made.Name())
		}
	}
}

func TestTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		args []string
	}{
		{"exec", []string{"exec", "box", "--", "true"}},
		{"list", []string{"-C", "dir", "list"}},
		{"list", []string{"-Cdir", "--directory=dir", "--directory", "dir", "list", "--json"}},
		{"", nil},
		{"", []string{"-C"}},
		{"", []string{"-C", "dir"}},
		{"", []string{"--help"}},
		{"", []string{"--version"}},
		{"", []string{"lsit"}},
		{"", []string{"help", "list"}},
		{"", []string{"__complete", "exec", ""}},
		{"", []string{"completion", "bash"}}, // its script knows all
	} {
		if got := typed(c.args); got != c.want {
			t.Errorf("%q name %q, not %q", c.args, got, c.want)
		}
	}
}

// The commands are built at every start of the program. That must not do work
// that only their run needs: reading tables to make a help text once took longer
// than all else that a start does.
func TestCommandsAreCheaplyBuilt(t *testing.T) {
	const most = 600 // for agent with its seven; cobra and flags need some 60 for each
	for _, c := range commands() {
		s := quietSession()
		if got := testing.AllocsPerRun(5, func() { c.build(s) }); got > most {
			t.Errorf("%s allocates %.0f times, more than %d", c.name, got, most)
		}
	}
}
