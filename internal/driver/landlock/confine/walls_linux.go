package confine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
)

// systemDirs are readable, with the toolchains and libraries of the host's
// userland. /proc is among them because hardly a runtime starts without its own
// entry there, and no rule can name the entry of a process that is still to be
// made: memory, environment and descriptors of others are kept by the domain.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32", "/opt", "/nix", "/gnu", "/etc", "/proc",
	"/sys/devices/system/cpu", "/sys/devices/system/node",
}

// devices can be used by every command; terminals only by the guest, because
// the human's own lie beside those that it makes.
var (
	devices   = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
	terminals = []string{"/dev/ptmx", "/dev/pts"}
)

// writable are the directories of the place.
func (c Config) writable() []string {
	return []string{c.Workspace.Upper, c.home(), c.temporary()}
}

func (c Config) home() string      { return filepath.Join(c.StateDir, "home") }
func (c Config) temporary() string { return filepath.Join(c.StateDir, "tmp") }

// domain is what the guest may reach, or with command set what a command may.
func (c Config) domain(command bool, self int) (*ruleset, error) {
	rules, err := newRuleset()
	if err != nil {
		return nil, err
	}
	for _, dir := range systemDirs {
		if err := allowAround(rules, dir, append([]string{c.Home}, c.Protected...)); err != nil {
			return nil, err
		}
	}
	for _, path := range c.Mounts {
		// Named by the human, or found by $PATH: mostly below HOME.
		if err := allowAround(rules, path, c.Protected); err != nil {
			return nil, err
		}
	}
	for _, path := range devices {
		if err := rules.allow(path, toUse); err != nil {
			return nil, err
		}
	}
	for _, dir := range c.writable() {
		if err := rules.allow(dir, toWrite); err != nil {
			return nil, err
		}
	}
	if command {
		return rules, nil
	}
	for _, path := range terminals {
		if err := rules.allow(path, toUse); err != nil {
			return nil, err
		}
	}
	return rules, rules.allowFile(self, toRead)
}

// allowAround allows to read dir but for what is protected: a repository that
// stands below /usr/src, or a HOME below /opt. Rules only add up, so the ways
// around it are allowed one by one.
func allowAround(rules *ruleset, dir string, protected []string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil // not there, or not ours to look at
	}
	within := false
	for _, path := range protected {
		if isBelow(real, path) {
			return nil
		}
		within = within || isBelow(path, real)
	}
	if !within {
		return rules.allow(real, toRead)
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			continue // what it leads to is allowed by itself, or not at all
		}
		if err := allowAround(rules, filepath.Join(real, entry.Name()), protected); err != nil {
			return err
		}
	}
	return nil
}

func isBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// confineCommands is called on the thread that makes every command: they are
// in a domain within the guest's, so that the guest can signal them and they
// cannot signal the guest. It returns where changes of modes and times are
// asked about.
func (c Config) confineCommands() (listener int, err error) {
	rules, err := c.domain(true, 0)
	if err != nil {
		return -1, err
	}
	if err := rules.restrict(); err != nil {
		return -1, err
	}
	return seccomp.InstallAttributes()
}
