package installer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/installer"
)

// Only packages by name are the keeper's work; everything else is apt's own.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want installer.Order
		ok   bool
	}{
		{"install ripgrep jq", installer.Order{Packages: []string{"ripgrep", "jq"}}, true},
		{"-qq -y install --no-install-recommends libpq-dev=15.3-1", installer.Order{Packages: []string{"libpq-dev=15.3-1"}}, true},
		{"-o Dpkg::Use-Pty=0 -q=2 install tool/stable", installer.Order{Packages: []string{"tool/stable"}}, true},
		{"-oAcquire::Retries=3 --option=APT::Get::Assume-Yes=1 install tool", installer.Order{Packages: []string{"tool"}}, true},
		{"-o Dir::State=/tmp/state update", installer.Order{}, false},
		{"-odir::cache=/tmp/cache install tool", installer.Order{}, false},
		{"--option=RootDir=/tmp/root install tool", installer.Order{}, false},
		{"update", installer.Order{Update: true}, true},
		{"-y update", installer.Order{Update: true}, true},
		{"install", installer.Order{}, false},
		{"install -y", installer.Order{}, false},
		{"", installer.Order{}, false},
		{"install -s ripgrep", installer.Order{}, false},
		{"install -t testing ripgrep", installer.Order{}, false},
		{"install ./tool.deb", installer.Order{}, false},
		{"install /home/me/tool.deb", installer.Order{}, false},
		{"install tool.deb", installer.Order{}, false},
		{"remove ripgrep", installer.Order{}, false},
		{"download ripgrep", installer.Order{}, false},
		{"--version", installer.Order{}, false},
	} {
		order, ok := installer.Read(strings.Fields(c.line))
		if ok != c.ok {
			t.Errorf("apt-get %s: %v, want %v", c.line, ok, c.ok)
			continue
		}
		if diff := cmp.Diff(c.want, order); ok && diff != "" {
			t.Errorf("apt-get %s (- want, + got):\n%s", c.line, diff)
		}
	}
}
