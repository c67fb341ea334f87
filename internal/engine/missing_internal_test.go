package engine

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

type packager struct{ driver.Driver }

func (packager) Packages() bool { return true }

func (packager) Guest() string { return "" }

func (packager) Traits() sandbox.Traits { return sandbox.Traits{Files: sandbox.FilesShared} }

// The text for the human to type is derived from a command that an agent wrote.
func TestMissingNote(t *testing.T) {
	t.Parallel()
	const program = "a program is missing inside; if a package of the operating system has it, a human can install it from outside: litterbox install box PACKAGE"
	const apt = "nothing was installed; a human can install it from outside, whatever the network rules of the sandbox: litterbox install box "
	p := &place{record: &sandbox.Sandbox{Name: "box"}, driver: packager{}}
	for _, c := range []struct {
		command string
		code    int
		want    string
	}{
		{"rg TODO", 127, program},
		{"rg TODO", 1, ""},
		{"apt-get install -y ripgrep jq", 100, apt + "ripgrep jq"},
		{"sudo apt install ripgrep", 127, apt + "ripgrep"},
		{"apt-get update && apt-get -y install libpq-dev=15.3-1 && make", 100, apt + "libpq-dev=15.3-1"},
		{"apt-get install $(cat list) --force; true", 100, ""},
		{"apt-get update", 100, ""},
	} {
		if got := missingNote(p, ExecRequest{Command: c.command}, wire.Exit{Code: c.code}); got != c.want {
			t.Errorf("%s (%d): %q, want %q", c.command, c.code, got, c.want)
		}
	}
	if got := missingNote(&place{record: &sandbox.Sandbox{Name: "box"}}, ExecRequest{Command: "rg"}, wire.Exit{Code: 127}); got != "" {
		t.Errorf("a driver without packages: %q", got)
	}
}
