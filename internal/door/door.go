// Package door is what OpenSSH clients of this machine are told about sandboxes:
// a block of ssh_config(5) for all hosts below one domain, the host key that they
// check, and the line in the user's own configuration that includes the block.
//
// It holds no list of sandboxes: the program that the block names finds at use
// which one a host means. Users have no key: the block starts a program of the
// user's own, and a client that can start it needs no key.
//
// Start reading at [Files.Prepare] and [Config.Install].
package door

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// User is the name under which sandboxes are logged in to. The client cannot
// choose which user commands run as inside.
const User = "litterbox"

// alias names the host key in known_hosts: all hosts share it, because one
// program answers for them all.
const alias = "litterbox"

// Files is the directory, private to the user, that holds block, host key and
// known_hosts.
type Files string

// Block returns the file that the user's configuration includes.
func (f Files) Block() string { return filepath.Join(string(f), "config") }

func (f Files) knownHosts() string { return filepath.Join(string(f), "known_hosts") }
func (f Files) hostKey() string    { return filepath.Join(string(f), "host_key") }

// Program is how the block's program is started.
type Program struct {
	Path string   // absolute
	Env  []string // K=V, needed in addition to the client's environment
	Args []string
}

// Prepare writes host key, known_hosts and block. An existing host key stays.
func (f Files) Prepare(program Program, domain string) error {
	block, err := f.Text(program, domain)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return unwritable(err)
	}
	key, err := f.HostKey()
	if err != nil {
		return err
	}
	known := alias + " " + string(ssh.MarshalAuthorizedKey(key.PublicKey()))
	return errors.Join(replace(f.knownHosts(), []byte(known), 0o600), replace(f.Block(), []byte(block), 0o600))
}

// Text returns the block. It does not depend on the existing sandboxes.
func (f Files) Text(program Program, domain string) (string, error) {
	for _, path := range []string{string(f), program.Path} {
		if strings.ContainsAny(path, "\"\n\r\\") {
			return "", fault.New(fault.Unsupported, "cannot write %q into a configuration of ssh: it has no way to quote that path", path)
		}
	}
	command := []string{}
	if len(program.Env) > 0 {
		command = append(append(command, "env"), program.Env...)
	}
	command = append(append(command, program.Path), program.Args...)
	for i, word := range command {
		// A shell reads it after ssh has replaced %h.
		command[i] = "'" + strings.ReplaceAll(strings.ReplaceAll(word, "'", `'\''`), "%", "%%") + "'"
	}
	lines := []string{
		"# Written by litterbox ssh-config. What is changed here is lost with the next.",
		// A host with an apostrophe would end the quotes around %h below.
		`Host *` + domain + ` "!*'*"`,
		"  ProxyCommand " + strings.Join(command, " ") + " '%h'",
		"  User " + User,
		"  HostKeyAlias " + alias,
		"  HostKeyAlgorithms ssh-ed25519",
		`  UserKnownHostsFile "` + strings.ReplaceAll(f.knownHosts(), "%", "%%") + `"`,
		"  GlobalKnownHostsFile /dev/null",
		"  StrictHostKeyChecking yes",
		"  UpdateHostKeys no",
		"  CheckHostIP no",
		"  PreferredAuthentications none",
		"  IdentityAgent none",
		"  IdentitiesOnly yes",
		"  ForwardAgent no",
		"  ForwardX11 no",
		"  SendEnv LANG LC_* COLORTERM NO_COLOR TZ",
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// HostKey returns the key that every sandbox answers with, made at first use.
func (f Files) HostKey() (ssh.Signer, error) {
	data, err := os.ReadFile(f.hostKey())
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.makeHostKey(); err != nil {
			return nil, err
		}
		data, err = os.ReadFile(f.hostKey())
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read the host key of sandboxes")
	}
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot use the host key of sandboxes").WithHint("rm %s, then litterbox ssh-config --install", f.hostKey())
	}
	return key, nil
}

// makeHostKey makes the key unless another process is faster.
func (f Files) makeHostKey() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return unwritable(err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot make a host key")
	}
	block, err := ssh.MarshalPrivateKey(private, "litterbox sandboxes")
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot make a host key")
	}
	temp, err := os.CreateTemp(string(f), ".host_key-*") // 0600
	if err != nil {
		return unwritable(err)
	}
	_, err = temp.Write(pem.EncodeToMemory(block))
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		if err = os.Link(temp.Name(), f.hostKey()); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err = errors.Join(err, os.Remove(temp.Name())); err != nil {
		return unwritable(err)
	}
	return nil
}

// replace writes a file atomically.
func replace(path string, content []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".litterbox-*")
	if err != nil {
		return unwritable(err)
	}
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return unwritable(errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

func unwritable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "cannot write the configuration of ssh")
}
