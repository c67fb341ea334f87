package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

const (
	whatRsync = "rsync of new files into"
	whatSync  = "`litterbox sync` of new files, with their commit"
	whatBack  = "`litterbox sync-back` of new files"
)

// besideSshd is the comparison for a sandbox's door.
const besideSshd = "rsync over ssh to OpenSSH's sshd on this machine"

// besideSshdBack is the comparison for what comes out.
const besideSshdBack = "rsync over ssh from OpenSSH's sshd on this machine"

// doors measures rsync of many small files into a sandbox over ssh, litterbox sync of
// them, and litterbox sync-back, beside rsync to and from OpenSSH's server. Into the
// project it ends when the files are committed; /tmp is not committed. Each round
// copies all of the files, so there are few.
func (b *bench) doors() error {
	for _, name := range []string{"rsync", "ssh", "ssh-keygen", "sshd"} {
		if _, err := exec.LookPath(name); err != nil {
			b.report.missing("rsync into a sandbox: %s is not installed", name)
			return nil
		}
	}
	count := 100_000
	if b.small {
		count = 2000
	}
	repo, source := filepath.Join(b.dir, "doors"), filepath.Join(b.dir, "doors-source")
	if err := errors.Join(os.Mkdir(repo, 0o755), os.Mkdir(source, 0o755)); err != nil {
		return err
	}
	if err := errors.Join(b.fill(repo, 100), write(source, count)); err != nil {
		return err
	}
	beside, err := b.sshd()
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"ssh-config", "--install"}, {"create", "box"}} {
		if err := b.command(repo, append([]string{b.litterbox}, args...)...); err != nil {
			return err
		}
	}
	config, err := b.output(repo, "sh", "-c", `sed -n 's/^Include //p' "$HOME/.ssh/config" | tr -d '"'`)
	if err != nil {
		return err
	}
	door := strings.TrimSpace(config)
	into := func(config, host, dir string) step {
		return func(i int) error {
			target := fmt.Sprintf("%s/%d/", dir, i)
			return b.command(b.dir, "rsync", "-a", "--mkpath", "-e", "ssh -F "+config, source+"/", host+":"+target)
		}
	}
	few := *b
	few.rounds = min(b.rounds, keptRounds)
	timings, err := few.measure(
		into(door, "box.litterbox", "in"),
		into(door, "box.litterbox", "/tmp/in"),
		into(beside, "beside", filepath.Join(b.dir, "doors-beside")),
	)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("%d files", count)
	b.timed(whatRsync+" a project, with their commit", where, timings[0], besideSshd, timings[2])
	b.timed(whatRsync+" a sandbox's /tmp", where, timings[1], besideSshd, timings[2])
	synced, err := b.synced(repo, source)
	if err != nil {
		return err
	}
	b.timed(whatSync, where, timingOf(synced), besideSshd, timings[2])
	back, fetched, err := few.syncedBack(repo, beside)
	if err != nil {
		return err
	}
	b.timed(whatBack, where, back, besideSshdBack, fetched)
	return b.deleteAll()
}

// syncedBack measures litterbox sync-back of the files that rsync has brought into a
// sandbox, beside rsync of those that it has brought to OpenSSH's server.
func (b *bench) syncedBack(repo, beside string) (back, fetched timing, err error) {
	brought, copied := filepath.Join(repo, "in"), filepath.Join(b.dir, "doors-fetched")
	timings := [2][]time.Duration{}
	for range b.rounds {
		for n, argv := range [][]string{
			{b.litterbox, "sync-back", "box", "in/0", "--yes"},
			{"rsync", "-a", "-e", "ssh -F " + beside, "beside:" + filepath.Join(b.dir, "doors-beside", "0") + "/", copied + "/"},
		} {
			took, err := clocked(func() error { return b.command(repo, argv...) })
			if err != nil {
				return back, fetched, err
			}
			timings[n] = append(timings[n], took)
		}
		if err := errors.Join(os.RemoveAll(brought), os.RemoveAll(copied)); err != nil {
			return back, fetched, err
		}
	}
	return timingOf(timings[0]), timingOf(timings[1]), nil
}

// synced measures litterbox sync of files that the checkout has and does not track,
// into a new sandbox each time.
func (b *bench) synced(repo, source string) (times []time.Duration, err error) {
	if err := os.Rename(source, filepath.Join(repo, "new")); err != nil {
		return nil, err
	}
	for i := range min(b.rounds, keptRounds) {
		name := fmt.Sprintf("synced%d", i)
		if err := b.command(repo, b.litterbox, "create", name); err != nil {
			return nil, err
		}
		took, err := clocked(func() error { return b.command(repo, b.litterbox, "sync", name, "new") })
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return times, nil
}

// sshd writes the configuration of a client that starts OpenSSH's server for each
// connection, without a port.
func (b *bench) sshd() (config string, err error) {
	server, identity, err := b.server("sshd")
	if err != nil {
		return "", err
	}
	who, err := user.Current()
	if err != nil {
		return "", err
	}
	config = filepath.Join(filepath.Dir(identity), "client")
	text := "Host beside\n  User " + who.Username + "\n  ProxyCommand " + strings.Join(server, " ") + clientText(identity)
	return config, os.WriteFile(config, []byte(text), 0o600)
}

// server writes the configuration of OpenSSH's server, with keys of its own, into a
// new directory. It returns the command that serves one connection, and the key of
// its user.
func (b *bench) server(name string, settings ...string) (command []string, identity string, err error) {
	program, err := exec.LookPath("sshd") // it executes itself and wants its whole path
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(b.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, key := range []string{"host", "user"} {
		if err := b.command(dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(key)); err != nil {
			return nil, "", err
		}
	}
	if os.Geteuid() == 0 { // where the server begins on a machine without one
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return nil, "", err
		}
	}
	settings = append(settings, "HostKey "+in("host"), "AuthorizedKeysFile "+in("user.pub"), "StrictModes no", "UsePAM no", "PermitRootLogin yes")
	err = os.WriteFile(in("server"), []byte(strings.Join(settings, "\n")+"\n"), 0o600)
	return []string{program, "-i", "-f", in("server")}, in("user"), err
}

// clientText is the rest of a client's configuration.
func clientText(identity string) string {
	return "\n  IdentityFile " + identity + "\n  IdentitiesOnly yes\n  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n  LogLevel ERROR\n"
}
