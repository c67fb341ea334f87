package remote

import (
	"context"
	"io"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Program is the outpost's program on its way to a machine.
type Program struct {
	ID   string // SHA-256 of its content, in hexadecimal digits
	Size int64
	Open func() (io.ReadCloser, error)
}

// SSH is a host that the user's own ssh reaches. Nothing must be installed there:
// the outpost's program is copied into a directory of its own, once for each
// version, and starts over for each link.
type SSH struct {
	Machine machine.Machine
	// Program returns the outpost for a system and an architecture.
	Program func(system, architecture string) (Program, error)
	Env     []string // of ssh
	// Config, when not empty, is the ssh_config(5) file to use instead of the
	// user's. Connections shared through it are shared as long as they exist.
	Config string
	Sudo   bool // the outpost is root's, by sudo without a password
	// State, when not empty, is the directory of all state: keepers of sandboxes there
	// lend their links to this host.
	State string

	// ensured says that a place is about to be made: the next Dial makes whatever
	// is missing there.
	ensured atomic.Bool
}

// NewSSH makes the driver of the places on one host. Its name is the machine's,
// below name.
func NewSSH(name string, host *SSH) *Driver {
	traits := sandbox.Traits{
		System: host.Machine.System, Architecture: host.Machine.Architecture,
		Files: sandbox.FilesCarried, Mounts: sandbox.MountsNone,
		Network: sandbox.NetworkStreams, Enforcer: "network namespace",
		Metrics:   []string{sandbox.MetricCPU, sandbox.MetricMemory, sandbox.MetricProcesses, sandbox.MetricThreads, sandbox.MetricUptime},
		KeepsHome: true,
	}
	return New(name, traits, func(string) Machine { return host })
}

// Name implements Machine. It holds the ID, so that files of a machine that was
// removed are not looked for in another of its name.
func (h *SSH) Name() string { return h.Machine.Name + " " + h.Machine.ID }

// Relays implements Relayed.
func (h *SSH) Relays() (root, outpost string) {
	if h.State == "" || h.Machine.Dir == "" {
		return "", ""
	}
	program, err := h.Program(h.Machine.System, h.Machine.Architecture)
	if err != nil {
		return "", "" // Dial reports it
	}
	return h.State, program.ID
}

// Ensure implements Machine. Making it costs no connection of its own.
func (h *SSH) Ensure(context.Context) error {
	h.ensured.Store(true)
	return nil
}

// Dial implements Machine. The outpost is a process of the host's for each link, and
// ends with it.
func (h *SSH) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	if h.Machine.Dir == "" {
		return nil, driver.ErrMachineLost
	}
	program, err := h.Program(h.Machine.System, h.Machine.Architecture)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		s, word, err := h.start(ctx, h.script(program), wordReady, wordGone, wordLacks)
		if err != nil {
			return nil, err
		}
		switch {
		case word == wordReady:
			h.ensured.Store(false)
			return s, nil
		case word == wordGone:
			_ = s.Close() // it has said all
			return nil, fault.Wrap("", driver.ErrMachineLost, "the directory %s of the machine %q is gone", h.Machine.Dir, h.Machine.Name)
		case attempt > 0:
			_ = s.Close()
			return nil, fault.Wrap(fault.Unavailable, unreached("the outpost does not stay in "+h.Machine.Dir), "cannot reach the machine %q", h.Machine.Name)
		}
		_ = s.Close()
		if err := h.bring(ctx, program); err != nil {
			return nil, err
		}
	}
}

// The words with which a script reports its progress, each on a line of its
// own. Anything a host's shell prints before is skipped.
const (
	wordReady = "litterbox-outpost: ready"
	wordGone  = "litterbox-outpost: gone"
	wordLacks = "litterbox-outpost: lacks"
	wordKept  = "litterbox-outpost: kept"
	wordMade  = "litterbox-outpost: made"
	wordEnd   = "litterbox-outpost: end"
)

// executable is the path of a version of the outpost's program, below the
// machine's directory. Its name is its argv[0].
func executable(program Program) string { return path.Join("bin", program.ID, "litterbox-guest") }

// script starts the outpost. It is one line without a letter that a shell other
// than sh reads in single quotes.
func (h *SSH) script(program Program) string {
	enter := "cd " + quoted(h.Machine.Dir) + " 2>/dev/null || { echo " + quoted(wordGone) + "; exit 0; }"
	if h.ensured.Load() {
		enter = "umask 077; mkdir -p " + quoted(h.Machine.Dir) + "; " + enter
	}
	file := executable(program)
	return enter + "; test -x " + file + " || { echo " + quoted(wordLacks) + "; exit 0; }; echo " + quoted(wordReady) + "; exec " + file + " outpost 2>>outpost.log"
}

// bring copies the program there, whole or not at all.
func (h *SSH) bring(ctx context.Context, program Program) error {
	file := executable(program)
	fresh := path.Join(path.Dir(file), ".new-$$")
	script := "umask 077; cd " + quoted(h.Machine.Dir) + " && mkdir -p " + path.Dir(file) + " && echo " + quoted(wordReady) +
		" && cat >" + fresh + " && test $(wc -c <" + fresh + ") -eq " + strconv.FormatInt(program.Size, 10) +
		" && chmod 755 " + fresh + " && mv -f " + fresh + " " + file + " && echo " + quoted(wordKept) + " || rm -f " + fresh
	s, _, err := h.start(ctx, script, wordReady)
	if err != nil {
		return err
	}
	defer s.Close()
	source, err := program.Open()
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = io.Copy(s, source)
	if err == nil {
		err = s.CloseWrite()
	}
	if _, said := s.await(ctx, wordKept); said != nil || err != nil {
		return h.failed(s, "cannot bring the outpost to the machine %q", h.Machine.Name)
	}
	return nil
}

// Look asks the host what it is, and makes the directory of the machine: it returns
// the record with its findings.
func (h *SSH) Look(ctx context.Context) (machine.Machine, error) {
	m := h.Machine
	script := "umask 077; uname -s; uname -m; d=\"${XDG_STATE_HOME:-$HOME/.local/state}/litterbox-outposts/" + m.ID + "\"; mkdir -p \"$d\" && cd \"$d\" && pwd -P && echo " + quoted(wordMade)
	s, _, err := h.start(ctx, "echo "+quoted(wordReady)+"; "+script, wordReady)
	if err != nil {
		return m, err
	}
	defer s.Close()
	said, err := s.await(ctx, wordMade)
	if err != nil || len(said) < 3 {
		return m, h.failed(s, "cannot make a directory in the machine %q", m.Name)
	}
	system, architecture := said[0], said[1]
	if m.Dir = said[2]; !path.IsAbs(m.Dir) {
		return m, fault.New(fault.Unavailable, "cannot use the machine %q: its home %q is not a directory", m.Name, m.Dir)
	}
	known := map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
	m.System, m.Architecture = strings.ToLower(system), known[architecture]
	if m.System != "linux" || m.Architecture == "" {
		err := fault.New(fault.Unsupported, "cannot use the machine %q: sandboxes are made on Linux of x86_64 or aarch64, and it is %s of %s", m.Name, system, architecture)
		h.Machine = m
		_ = h.Clear(ctx) // nothing is in it
		return m, err
	}
	return m, nil
}

// Clear removes the directory of the machine with everything in it.
func (h *SSH) Clear(ctx context.Context) error {
	dir := quoted(h.Machine.Dir)
	// Only the kernel makes directories there that their owner may not enter.
	script := "echo " + quoted(wordReady) + "; cd / && { test -d " + dir + " || test -L " + dir + " ; } && { chmod -R u+rwX " + dir + " 2>/dev/null; rm -rf " + dir +
		"; rmdir " + quoted(path.Dir(h.Machine.Dir)) + " 2>/dev/null; }; test -e " + dir + " || echo " + quoted(wordEnd)
	s, _, err := h.start(ctx, script, wordReady)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.await(ctx, wordEnd); err != nil {
		return h.failed(s, "cannot clear %s in the machine %q", h.Machine.Dir, h.Machine.Name)
	}
	return nil
}

// quoted is text as one word of sh.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
