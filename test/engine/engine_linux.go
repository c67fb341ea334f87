package engine

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Engine is a running engine.
type Engine struct {
	Driver  string   // the litterbox driver that uses it
	Dir     string   // all of its files
	Address string   // of its socket
	Command []string // its own client

	t       testing.TB
	env     string // by which it is found; empty for a variable with its address
	world   World
	log     string
	service []string
	stop    func()
}

// Env returns the variable by which litterbox finds it.
func (e *Engine) Env() string {
	if e.env != "" {
		return e.env
	}
	if e.Driver == "podman" {
		return "CONTAINER_HOST=" + e.Address
	}
	return "DOCKER_HOST=" + e.Address
}

// Start starts the engine. A new engine already runs.
func (e *Engine) Start() {
	e.t.Helper()
	e.stop = e.world.serve(e.t, e.log, e.service)
	await(e.t, e.log, func() error {
		if _, err := os.Stat(strings.TrimPrefix(e.Address, "unix://")); err != nil {
			return err
		}
		_, err := e.Run("version")
		return err
	})
}

// Stop ends the engine in an orderly way.
func (e *Engine) Stop() { e.stop() }

// Run runs the engine's own client.
func (e *Engine) Run(args ...string) (string, error) { return e.Feed(nil, args...) }

// Feed is Run with an input.
func (e *Engine) Feed(in io.Reader, args ...string) (string, error) {
	cmd := exec.Command(e.Command[0], slices.Concat(e.Command[1:], args)...)
	cmd.Stdin = in
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = errors.New(strings.Join(args, " ") + ": " + err.Error() + ": " + string(out))
	}
	return string(out), err
}

// Must is Run for commands that must succeed.
func (e *Engine) Must(args ...string) string {
	e.t.Helper()
	out, err := e.Run(args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// Dir returns a directory whose path leaves room for the names of sockets. Other
// users may traverse it.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What an engine started may still change its files for a moment.
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			err := os.RemoveAll(dir)
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Error(err)
				return
			}
		}
	})
	return dir
}

func put(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// client returns the engine's own program. Debian's comes before another on the
// PATH, so that client and daemon have one version.
func client(name string) string {
	path := filepath.Join("/usr/bin", name)
	if _, err := os.Stat(path); err != nil {
		return name
	}
	return path
}
