// Package caller is the user that a use case works for: whose environment, home
// and name count. A frontend sets it once, in the context of a request; below
// frontends it is never taken from the process, so that a server lends nothing
// of its own to its clients.
//
// Start reading at [For] and [Of].
package caller

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// Caller is the user that a use case works for: what a sandbox is told about
// the human, and which of the host's directories are lent to it.
type Caller struct {
	Env  []string // as of a process, K=V
	Home string   // a clean absolute path, or empty
	User string   // the login name, or empty
	Root bool     // its user id is 0

	// Human says that a human types at a command line: only humans reach live
	// environments.
	Human bool

	// Hidden are secrets that are not in Env but must be redacted too, because
	// the process that works for the caller has them.
	Hidden []string
}

type key struct{}

// For returns ctx for work on behalf of the given caller.
func For(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, key{}, &caller)
}

// Of returns the caller that ctx works for. Without one it returns a caller that has
// nothing: no environment, no home, no name. It is never nil and must not be changed.
func Of(ctx context.Context) *Caller {
	if found, ok := ctx.Value(key{}).(*Caller); ok {
		return found
	}
	return &Caller{}
}

// Get returns the value of a variable, or "". Of two, the last counts.
func (c *Caller) Get(name string) string {
	value, _ := c.Lookup(name)
	return value
}

// Lookup is Get that also reports whether the variable is set.
func (c *Caller) Lookup(name string) (value string, set bool) {
	for _, entry := range slices.Backward(c.Env) {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// Secrets returns the values of variables that are named like secrets, in case
// one turns up in an argument.
func (c *Caller) Secrets() []string {
	return append(redact.NamedValues(c.Env), c.Hidden...)
}

// ThisProcess returns the user who started this process, with its whole environment:
// for a frontend whose one client is that user, and for the process itself.
func ThisProcess() Caller {
	caller := Caller{Env: os.Environ(), Root: os.Getuid() == 0}
	if me, err := user.Current(); err == nil {
		caller.User = me.Username
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		caller.Home = filepath.Clean(home)
	}
	return caller
}

// Account returns the account that this process runs as, for a frontend that
// serves clients over the network: they work with the account's files and
// settings, and see nothing else of the server's environment.
func Account() Caller {
	caller := ThisProcess()
	caller.Hidden = redact.NamedValues(caller.Env)
	caller.Env = Lasting(caller.Env)
	return caller
}
