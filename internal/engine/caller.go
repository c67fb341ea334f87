package engine

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// Caller is for whom a use case works: what a sandbox is told of the human, and
// which of the host's directories are lent to it. A request carries it in its
// context; it is never taken from the process in passing, so that a server can
// serve callers that are not its own.
type Caller struct {
	Env  []string // as of a process, K=V
	Home string   // a clean absolute path, or empty
	User string   // the login name, or empty
	Root bool     // its user id is 0

	process bool // it is this process's own
}

type callerKey struct{}

// For is ctx for use cases that work for the given caller.
func For(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller)
}

// callerOf is for whom ctx works: this process where nobody else is named, as
// in a command line.
func callerOf(ctx context.Context) *Caller {
	if caller, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return caller
	}
	caller := ThisProcess()
	return &caller
}

// ThisProcess is who started this process. It is the one place in which the
// engine reads its environment.
func ThisProcess() Caller {
	caller := Caller{Env: os.Environ(), User: processUser(), Root: os.Getuid() == 0, process: true}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		caller.Home = filepath.Clean(home)
	}
	return caller
}

// processUser is asked for once: it cannot change while we run.
var processUser = sync.OnceValue(func() string {
	if me, err := user.Current(); err == nil {
		return me.Username
	}
	return ""
})

// Get returns the value of a variable, or "". Of two, the last counts.
func (c *Caller) Get(name string) string {
	for n := len(c.Env) - 1; n >= 0; n-- {
		if key, value, ok := strings.Cut(c.Env[n], "="); ok && key == name {
			return value
		}
	}
	return ""
}

// secrets are the values of variables that are named like secrets, should one
// turn up in an argument: the caller's, and those of this process.
func (c *Caller) secrets() []string {
	own := redact.NamedValues(c.Env)
	if c.process {
		return own
	}
	return append(own, redact.NamedValues(os.Environ())...)
}
