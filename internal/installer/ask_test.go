package installer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/installer"
)

// So with the programs of other systems.
func TestReadFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		manager, line string
		want          installer.Order
		ok            bool
	}{
		{"dnf", "install -y ripgrep jq", installer.Order{Packages: []string{"ripgrep", "jq"}}, true},
		{"dnf", "-q --setopt=install_weak_deps=False install gcc-c++", installer.Order{Packages: []string{"gcc-c++"}}, true},
		{"dnf", "makecache", installer.Order{Update: true}, true},
		{"dnf", "--installroot=/tmp/root install jq", installer.Order{}, false},
		{"dnf", "install ./tool.rpm", installer.Order{}, false},
		{"dnf", "remove jq", installer.Order{}, false},
		{"pacman", "-S --noconfirm ripgrep", installer.Order{Packages: []string{"ripgrep"}}, true},
		{"pacman", "-Sy --needed jq", installer.Order{Packages: []string{"jq"}}, true},
		{"pacman", "-Sy", installer.Order{Update: true}, true},
		{"pacman", "-Syu jq", installer.Order{}, false},
		{"pacman", "-Ss jq", installer.Order{}, false},
		{"pacman", "-S --root /tmp/root jq", installer.Order{}, false},
		{"pacman", "-U ./tool.pkg.tar.zst", installer.Order{}, false},
		{"pacman", "-S", installer.Order{}, false},
		{"apk", "add --no-cache ripgrep jq=1.7-r0", installer.Order{Packages: []string{"ripgrep", "jq=1.7-r0"}}, true},
		{"apk", "--no-cache -U add jq", installer.Order{Packages: []string{"jq"}}, true},
		{"apk", "update", installer.Order{Update: true}, true},
		{"apk", "add", installer.Order{}, false},
		{"apk", "add --root /tmp/root jq", installer.Order{}, false},
		{"apk", "add -t build jq", installer.Order{}, false},
		{"apk", "add ./tool.apk", installer.Order{}, false},
		{"apk", "add !jq", installer.Order{}, false},
		{"apk", "del jq", installer.Order{}, false},
		{"apt", "install jq", installer.Order{Packages: []string{"jq"}}, true},
	} {
		order, ok := installer.ReadFor(c.manager, strings.Fields(c.line))
		if ok != c.ok {
			t.Errorf("%s %s: %v, want %v", c.manager, c.line, ok, c.ok)
			continue
		}
		if diff := cmp.Diff(c.want, order); ok && diff != "" {
			t.Errorf("%s %s (- want, + got):\n%s", c.manager, c.line, diff)
		}
	}
}

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
