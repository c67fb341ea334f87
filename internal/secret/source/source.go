// Package source reads values of secrets where they come from, on the host. It
// shows no value: an error says which source it is and what is wrong, and
// nothing that a command printed or a file holds.
package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/vault"
)

// Reader reads sources for one human.
type Reader struct {
	Home  string // for ~/
	Vault vault.Vault
	// Lookup gives a variable; the receiver wipes the value.
	Lookup func(name string) (value []byte, set bool)
	// Env is the environment of commands; nil is this process's.
	Env []string
}

// most is a little more than any value may have.
const most = secret.Longest + 2

// Read reads the value of a source. The receiver wipes it.
func (r Reader) Read(ctx context.Context, s secret.Source) ([]byte, error) {
	switch s.Kind {
	case secret.Env:
		value, set := r.Lookup(s.Name)
		if !set || len(value) == 0 {
			return nil, fault.New(fault.NotFound, "the variable %s of the host is not set", s.Name).WithHint("export %s=…", s.Name)
		}
		return value, nil
	case secret.File:
		return r.file(s.Name)
	case secret.Command:
		return r.command(ctx, s.Command)
	case secret.Keyring, secret.Age:
		return r.Vault.Get(ctx, s.Kind, s.Name)
	}
	return nil, fault.New(fault.Unsupported, "the source %q is unknown", s.Kind)
}

func (r Reader) file(path string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if r.Home == "" {
			return nil, fault.New(fault.Invalid, "the file %s cannot be found without a home", path)
		}
		path = filepath.Join(r.Home, rest)
	}
	// O_NONBLOCK: opening a named pipe would wait for a writer for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no file %s", path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the file cannot be read")
	}
	defer file.Close() // read only
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fault.New(fault.Denied, "%s is not a regular file", path)
	}
	value, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		clear(value)
		return nil, fault.Wrap(fault.Unavailable, err, "the file cannot be read")
	}
	return value, nil
}

// limited is a buffer that takes no more than a value can hold.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := most - l.Len(); room > 0 {
		_, _ = l.Buffer.Write(p[:min(len(p), room)]) // a buffer takes everything
	}
	return len(p), nil
}

func (r Reader) command(ctx context.Context, argv []string) ([]byte, error) {
	out := &limited{}
	out.Grow(most + bytes.MinRead) // so that no copy is left behind
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.WaitDelay = "/", r.Env, out, time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = fault.New(fault.Timeout, "the command %s takes too long", argv[0])
	case errors.As(err, &exit):
		err = fault.New(fault.Unavailable, "the command %s ended with code %d", argv[0], exit.ExitCode())
	case errors.Is(err, exec.ErrNotFound):
		err = fault.New(fault.NotFound, "the command %s is not installed", argv[0])
	case err != nil:
		err = fault.New(fault.Unavailable, "the command %s cannot be run", argv[0])
	}
	if err != nil {
		clear(out.Bytes())
		return nil, err
	}
	return out.Bytes(), nil
}
