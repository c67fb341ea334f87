package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
)

// rootBundles are the files in which distributions keep the roots that programs
// trust, the list of Go's crypto/x509 with those of curl and OpenSSL.
//
// To add one: a line here.
var rootBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Gentoo, NixOS
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/ssl/cert.pem",                                 // Alpine
}

// roots are the certificates that a sandbox trusts.
type roots struct {
	mounts []driver.Mount
	env    map[string]string
}

// hostRoots finds the host's bundles, each once, by their true paths: a mount does
// not follow links. source is the one that the human's own programs read.
func hostRoots(caller *caller.Caller) (source string, found []string) {
	seen := map[string]bool{}
	for _, path := range rootBundles {
		path, err := filepath.EvalSymlinks(path)
		if err != nil || seen[path] {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			seen[path] = true
			found = append(found, path)
		}
	}
	if source = caller.Get("SSL_CERT_FILE"); source == "" && len(found) > 0 {
		source = found[0]
	}
	return source, found
}

// writeRoots writes the files that replace the host's bundles inside. They exist
// from the start, so that a later rule that needs the sandbox to trust an
// authority of its own restarts nothing: the keeper appends to them.
//
// An image has roots of its own, in places of its own. They stay as they are: its
// programs are told of these only where the sandbox must trust its own authority.
func (p *place) writeRoots(caller *caller.Caller, source string, bundles []string) (roots, error) {
	made := roots{env: map[string]string{}}
	var content []byte
	if source != "" {
		var err error
		if content, err = os.ReadFile(source); err != nil {
			return made, fault.Wrap(fault.Unavailable, err, "cannot read the certificates that this machine trusts")
		}
		// These variables lose no roots: they name the default of most programs, or
		// add to theirs. Where this machine has no roots at all, a program's own
		// are better than nothing.
		if p.record.Image == nil {
			for _, name := range additional {
				made.env[name] = keeper.RootsInside
			}
		}
	}
	extra := p.extraRoots(caller, content)
	if len(content) > 0 {
		content = withRoots(content, extra)
	}
	if len(extra) == 0 {
		extra = firstRoot(content)
	}
	if len(extra) > 0 {
		made.env[extraRootsVariable] = keeper.OwnRootsInside
	}
	all, own := p.path(keeper.RootsFile), p.path(keeper.OwnRootsFile)
	for path, content := range map[string][]byte{all: content, own: extra} {
		err := os.WriteFile(path, content, 0o644)
		if err == nil {
			err = os.Chmod(path, 0o644) // another user reads it inside, whatever the umask
		}
		if err != nil {
			return made, fault.Wrap(fault.Unavailable, err, "cannot write the certificates that sandbox %q trusts", p.record.Name)
		}
	}
	made.mounts = []driver.Mount{{Source: all, Target: keeper.RootsInside}, {Source: own, Target: keeper.OwnRootsInside}}
	if p.record.Image != nil {
		return made, nil
	}
	for _, path := range bundles {
		made.mounts = append(made.mounts, driver.Mount{Source: all, Target: path})
	}
	return made, nil
}

// additional are the variables of programs that read the system's roots, or add
// them to their own.
var additional = []string{"SSL_CERT_FILE", "DENO_CERT"}

// overriding are the variables of programs that bring roots of their own. They
// win over the program's own configuration, so they are set only where the
// sandbox must trust its own authority.
var overriding = []string{"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "PIP_CERT"}

// trustEnv is the environment, as K=V, that a command needs to trust the
// sandbox's own authority. Variables of container.env stay.
func (e *Engine) trustEnv(ctx context.Context, p *place) ([]string, error) {
	policy, err := e.policy(p)
	if err != nil {
		return nil, err
	}
	looks, err := keeper.Looks(p.dir)
	if err != nil {
		return nil, err
	}
	if secrets, err := keeper.ReadSecrets(p.dir); err == nil && secrets.Inspects() {
		looks = true // the keeper says what is wrong with a damaged record
	}
	if !looks && !policy.Inspects() && !keeper.HasLogins(p.dir) {
		return nil, nil
	}
	if info, err := os.Stat(p.path(keeper.RootsFile)); err != nil || info.Size() == 0 {
		return nil, nil // a sandbox that was started before there were such files
	}
	found, err := e.settings(ctx, p.record.Repository, p.record.GitDir)
	if err != nil {
		return nil, err
	}
	var env []string
	names := overriding
	if p.record.Image != nil || p.driver.Traits().Lends {
		names = slices.Concat(overriding, additional)
	}
	for _, name := range names {
		if _, set := found.config.Container.Env[name]; !set {
			env = append(env, name+"="+keeper.RootsInside)
		}
	}
	if _, set := found.config.Container.Env[extraRootsVariable]; !set {
		env = append(env, extraRootsVariable+"="+keeper.OwnRootsInside)
	}
	return env, nil
}
