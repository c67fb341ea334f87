package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// sshAgentInside is the directory of the agent's socket, and the variable with
// which programs find it.
const (
	sshAgentInside   = "/var/lib/litterbox/ssh-agent"
	sshAgentVariable = "SSH_AUTH_SOCK"
	// sshAgentFar is the socket that the guest makes, where nothing of this machine is
	// mounted.
	sshAgentFar = "/run/litterbox-ssh-agent/socket"
)

// offerSSHAgent gives the sandbox a way to the human's ssh-agent, where the
// configuration says so: a socket of the keeper's, which asks about every
// signature, and the host's known_hosts.
func (p *place) offerSSHAgent(caller *caller.Caller, spec *driver.Spec) error {
	failed := func(err error) error {
		return fault.Wrap(fault.Unavailable, err, "cannot offer your ssh-agent to sandbox %q", p.record.Name)
	}
	file := p.path(keeper.SSHAgentFile)
	socket := caller.Get(sshAgentVariable)
	if p.config.SSHAgent.Enabled && socket == "" {
		p.note("ssh-agent.enabled is set, and there is no agent: SSH_AUTH_SOCK is not set where the sandbox was started")
	}
	if !p.config.SSHAgent.Enabled || !filepath.IsAbs(socket) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed(err)
		}
		return nil
	}
	far, knownInside := p.driver.Traits().Mounts != sandbox.MountsAny, filepath.Join(spec.Home, ".ssh", "known_hosts")
	agent := keeper.SSHAgent{Socket: socket, Keys: p.config.SSHAgent.Keys, Hosts: p.config.SSHAgent.Hosts}
	if far {
		agent.Inside, agent.KnownHosts = sshAgentFar, knownInside
	}
	data, err := seal.Encode(agent)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	dir, known := p.path(keeper.SSHAgentDir), p.path(keeper.KnownHostsFile)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755) // whatever the umask
	}
	if err == nil {
		err = copyKnownHosts(known, filepath.Join(caller.Home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts")
	}
	if err != nil {
		return failed(err)
	}
	if far {
		spec.Lent = append(spec.Lent, driver.Lent{Source: known, Target: knownInside})
		spec.Env[sshAgentVariable] = sshAgentFar
		return nil
	}
	spec.Mounts = append(spec.Mounts, driver.Mount{Source: dir, Target: sshAgentInside},
		driver.Mount{Source: known, Target: knownInside})
	spec.Env[sshAgentVariable] = filepath.Join(sshAgentInside, keeper.SSHAgentSocket)
	return nil
}

// copyKnownHosts joins files of known host keys, which are no secret.
func copyKnownHosts(to string, from ...string) error {
	var all []byte
	for _, path := range from {
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all = append(append(all, data...), '\n')
	}
	if err := os.WriteFile(to, all, 0o644); err != nil {
		return err
	}
	return os.Chmod(to, 0o644) // another user reads it inside, whatever the umask
}

// Signature is one that a program inside asks the human's ssh-agent for.
type Signature = keeper.Signature

// ApproveRequest answers one signature that waits.
type ApproveRequest struct {
	Dir    string
	Name   string
	ID     int
	Refuse bool
}

// Signatures lists the signatures in a sandbox that wait for an answer.
func (e *Engine) Signatures(ctx context.Context, dir, name string) ([]Signature, error) {
	_, p, err := e.findAny(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	found, err := p.signatures(ctx)
	return found.Waiting, err
}

// signatures are those of a sandbox that is offered an ssh-agent.
func (p *place) signatures(ctx context.Context) (found keeper.Signatures, err error) {
	if _, err := os.Stat(p.path(keeper.SSHAgentFile)); errors.Is(err, fs.ErrNotExist) {
		return keeper.Signatures{Waiting: []Signature{}}, nil
	}
	stream, err := p.dial(ctx)
	if err != nil {
		return keeper.Signatures{Waiting: []Signature{}}, nil // nothing runs, so nothing waits
	}
	defer stream.Close()
	return keeper.ReadSignatures(ctx, stream)
}

// lateNote tells what a command's programs wanted signed in vain: they themselves
// say only that the agent refused. It is empty where there was nothing.
func lateNote(ctx context.Context, p *place, began time.Time) string {
	found, err := p.signatures(ctx)
	if err != nil {
		return "" // the command counts
	}
	var purposes []string
	for _, one := range found.Late {
		if !one.Since.Before(began) && !slices.Contains(purposes, one.Purpose) {
			purposes = append(purposes, one.Purpose)
		}
	}
	if len(purposes) == 0 {
		return ""
	}
	return "your ssh-agent did not sign, because it was not approved in time: " + strings.Join(purposes, "; ") + "; while it waits: litterbox approve " + p.record.Name
}

// Approve answers a signature that waits.
func (e *Engine) Approve(ctx context.Context, request ApproveRequest) (err error) {
	e, p, err := e.findAny(ctx, request.Dir, request.Name)
	if err != nil {
		return err
	}
	ctx, call, err := e.recordIn(ctx, p, "approve", map[string]any{"signature": request.ID, "refuse": request.Refuse})
	if err != nil {
		return err
	}
	defer func() { err = call.end("", nil, err) }()
	stream, err := p.dial(ctx)
	if err != nil {
		return fault.New(fault.NotFound, "sandbox %q does not run, so no signature waits", p.record.Name)
	}
	defer stream.Close()
	op := keeper.OpSign
	if request.Refuse {
		op = keeper.OpNoSign
	}
	return wire.Ask(ctx, stream, wire.Request{Op: op, Reason: strconv.Itoa(request.ID)})
}
