package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver/ruleset"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
)

// systemDirs are readable, with the toolchains and libraries of the host's
// userland. /proc is among them because hardly any runtime starts without its
// own entry there, and no rule can name the entry of a future process: the
// domain protects the memory, environment and descriptors of others.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32", "/opt", "/nix", "/gnu", "/etc", "/proc",
	"/sys/devices/system/cpu", "/sys/devices/system/node",
}

// devices can be used by every command; terminals only by the guest, because
// the human's own are beside those that it makes.
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

// MinABI is the oldest Landlock that the tier can be built on (kernel 6.2): in
// earlier ones truncate(2) passes every rule.
const MinABI = 3

// SignalABI is the first Landlock that keeps signals inside (kernel 6.12).
const SignalABI = 6

// newDomain makes a domain that is the only wall: no rule allows TCP, nor does
// the filter of system calls.
func newDomain() (*ruleset.Ruleset, error) {
	if abi := ruleset.ABI(); abi < MinABI {
		return nil, fmt.Errorf("the kernel's Landlock has version %d, and %d is the least", abi, MinABI)
	}
	return ruleset.New(ruleset.Domain{Network: true, Scoped: true})
}

// domain allows what the guest may reach, or with command set what a command may.
func (c Config) domain(command bool, self int) (*ruleset.Ruleset, error) {
	rules, err := newDomain()
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
		if err := rules.Allow(path, ruleset.Use); err != nil {
			return nil, err
		}
	}
	for _, dir := range c.writable() {
		if err := rules.Allow(dir, ruleset.Write); err != nil {
			return nil, err
		}
	}
	if command {
		return rules, nil
	}
	for _, path := range terminals {
		if err := rules.Allow(path, ruleset.Use); err != nil {
			return nil, err
		}
	}
	return rules, rules.AllowFile(self, ruleset.Read)
}

// allowAround allows reading dir except for what is protected: a repository
// below /usr/src, or a HOME below /opt. Rules only add up, so the ways around
// it are allowed one by one.
func allowAround(rules *ruleset.Ruleset, dir string, protected []string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil // missing, or not ours to look at
	}
	within := false
	for _, path := range protected {
		if isBelow(real, path) {
			return nil
		}
		within = within || isBelow(path, real)
	}
	if !within {
		return rules.Allow(real, ruleset.Read)
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
			continue // its target is allowed by itself, or not at all
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
// cannot signal the guest. It returns the listener for changes of modes and
// times.
func (c Config) confineCommands() (listener int, err error) {
	rules, err := c.domain(true, 0)
	if err != nil {
		return -1, err
	}
	if err := rules.Restrict(); err != nil {
		return -1, err
	}
	return seccomp.InstallAttributes()
}
