package engine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
)

// clientsInside is where sandboxes see the clients that were installed for all
// of them.
const clientsInside = "/var/lib/litterbox/clients"

// clientsDir is where they are on this machine.
func (e *Engine) clientsDir() string { return filepath.Join(e.Store.Shared(), "clients") }

// clientMounts lend the installed clients to a sandbox, as far as there are any
// when it starts.
func (e *Engine) clientMounts(p *place) []driver.Mount {
	if info, err := os.Stat(e.clientsDir()); err != nil || !info.IsDir() {
		return nil
	}
	return []driver.Mount{{Source: e.clientsDir(), Target: clientsInside}}
}

// sharedClient is the client that was installed once on this machine for all
// sandboxes; it is installed where it is missing, by npm without the scripts of
// any package: a package's programs are for inside only.
func (e *Engine) sharedClient(ctx context.Context, p *place, client profile.Profile) (string, error) {
	dir := filepath.Join(e.clientsDir(), client.Name)
	program := clientBinary(dir, client)
	if program == "" {
		if err := e.installClient(ctx, client, dir); err != nil {
			return "", err
		}
		if program = clientBinary(dir, client); program == "" {
			return "", fault.New(fault.NotFound, "cannot find the program of %s in what npm installed", client.Title).WithHint("ls %s", dir)
		}
	}
	inside := filepath.Join(clientsInside, client.Name, program)
	const here = `test -x "$1"`
	if _, code, err := p.inside(ctx, here, inside); err != nil || code == 0 {
		return inside, err
	}
	// It was started before there were any: the mount is not in it yet.
	if work, err := e.atWork(ctx, p); err != nil || len(work) > 0 {
		return "", errors.Join(err, fault.New(fault.Conflict, "%s was installed, and sandbox %q has to be restarted to see it", client.Title, p.record.Name).
			WithHint("litterbox stop %s", p.record.Name))
	}
	if err := errors.Join(e.settle(ctx, p), e.stop(ctx, p)); err != nil {
		return "", err
	}
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return "", err
	}
	if err := stream.Close(); err != nil {
		return "", err
	}
	if _, code, err := p.inside(ctx, here, inside); err != nil || code != 0 {
		return "", errors.Join(err, fault.New(fault.NotFound, "cannot run %s inside: %q is not there", client.Title, inside))
	}
	return inside, nil
}

// clientBinary is the client's program below an installation; empty when there
// is none.
func clientBinary(dir string, client profile.Profile) string {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	for _, binary := range client.Binaries {
		binary = strings.ReplaceAll(binary, "{arch}", arch)
		if info, err := os.Stat(filepath.Join(dir, binary)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return binary
		}
	}
	return ""
}

// installClient installs a client beside the others and puts it in its place in
// one step.
func (e *Engine) installClient(ctx context.Context, client profile.Profile, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fault.New(fault.NotFound, "cannot find %s on this machine, nor npm to install it", client.Title).
			WithHint("npm install -g %s", client.Package)
	}
	if err := os.MkdirAll(e.clientsDir(), 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make the directory of clients")
	}
	if err := os.Chmod(e.clientsDir(), 0o755); err != nil { // another user reads it inside
		return fault.Wrap(fault.Unavailable, err, "cannot make the directory of clients")
	}
	temp, err := os.MkdirTemp(e.clientsDir(), "."+client.Name+"-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make the directory of a client")
	}
	defer os.RemoveAll(temp)
	if e.Progress != nil {
		e.Progress("installing "+client.Title+" once for all sandboxes", 0, 0)
	}
	command := exec.CommandContext(ctx, npm, "install", "--prefix", temp, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", client.Package)
	command.Dir, command.Env = temp, callerOf(ctx).Env
	command.WaitDelay = shutdownGrace
	if out, err := command.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return fault.New(fault.Canceled, "canceled: %s was not installed", client.Title)
		}
		return fault.Wrap(fault.Unavailable, err, "cannot install %s: npm says %s", client.Title, lastLines(strings.TrimSpace(string(out)), 3)).
			WithHint("npm install -g %s", client.Package)
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make the directory of a client")
	}
	if err := os.Rename(temp, dir); err != nil {
		if clientBinary(dir, client) != "" {
			return nil // another command was faster
		}
		return fault.Wrap(fault.Unavailable, err, "cannot put %s in its place", client.Title)
	}
	return nil
}
