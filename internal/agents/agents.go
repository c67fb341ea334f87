// Package agents puts litterbox into the settings of the agents that people
// use, and takes it out again: the entry for the MCP server, the client's own
// permissions where it has any, and a few rules for the model.
//
// Everything else in those files stays byte for byte, and what was put in is
// recorded, so that taking it out gives back the file that was there. It
// deliberately runs no client and knows nothing of sandboxes.
//
// Start reading at [Host.Install]. To add a client: a row in [Clients].
package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// Scope says for whom litterbox is installed.
type Scope string

// The scopes.
const (
	Project Scope = "project" // everyone who works in the repository
	User    Scope = "user"    // this user, wherever they work
)

// ServerName is the server's name in the settings of every client, and thus the
// beginning of its tools' names.
const ServerName = "litterbox"

// Host is a machine, as far as settings are concerned.
type Host struct {
	Home   string
	State  string // where changes are recorded
	Env    func(string) string
	System string // runtime.GOOS
	Self   string // the path of this program
	Find   func(program string) (string, error)
}

// ThisHost is the machine that this program runs on; state is where it may keep its
// records, and who is the user whose settings count.
func ThisHost(who *caller.Caller, state string) (Host, error) {
	if who.Home == "" {
		return Host{}, fault.New(fault.NotFound, "cannot find your home directory: HOME is not set").WithHint("export HOME=…")
	}
	self, err := os.Executable()
	if err != nil {
		self = ServerName
	}
	return Host{
		Home: who.Home, State: filepath.Join(state, "agents"), Env: who.Get, System: runtime.GOOS, Self: self, Find: exec.LookPath,
	}, nil
}

// home is a path below the user's home.
func (h Host) home(path ...string) string {
	return filepath.Join(append([]string{h.Home}, path...)...)
}

// config is a path below the user's configuration directory.
func (h Host) config(path ...string) string {
	base := h.Env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = h.home(".config")
	}
	return filepath.Join(append([]string{base}, path...)...)
}

// own is a directory that a variable moves away from the home.
func (h Host) own(variable, name string) string {
	if dir := h.Env(variable); filepath.IsAbs(dir) {
		return dir
	}
	return h.home(name)
}

// Client is an agent's client and what is known about its settings.
type Client struct {
	Name  string // as it is typed
	Title string

	programs []string
	homes    func(Host) []string // directories that it has made, where it was used

	format patch.Format
	// config gives the files that may hold the server's entry, relative to the
	// repository for the project's scope. The first that exists counts. None
	// where the client has no such scope.
	config func(Host, Scope) []string
	path   []string // of the entry
	entry  func(command string) patch.Object

	// exclusive are the settings that deny the client's own tools; nil where it has
	// none in a file; without then names the alternative.
	exclusive func(Host, Scope) []setting
	granted   patch.Object // what else the entry holds then
	// also are values that the client adds to the file by itself where they are
	// missing. They are written so that uninstall can take them out.
	also    []setting
	without string

	// rules is the file with rules for the model; "" where there is none.
	rules func(Host, Scope) string

	// next lists what the human must do.
	next func(scope Scope, exclusive bool) []string
}

// setting is one value in one file, or strings that a list holds.
type setting struct {
	file   string // "" for the one that holds the entry
	format patch.Format
	path   []string
	value  any
	items  []string
	whole  string // instead: the whole file
}

// Clients are all of them, in the order in which they are shown.
func Clients() []Client {
	return []Client{claude(), codex(), cursor(), vscode(), gemini(), opencode(), goose()}
}

// Names lists the names of clients.
func Names() []string {
	var names []string
	for _, c := range Clients() {
		names = append(names, c.Name)
	}
	return names
}

// ByName finds a client.
func ByName(name string) (Client, error) { return byName(name, "install") }

func byName(name, verb string) (Client, error) {
	for _, c := range Clients() {
		if c.Name == name || slices.Contains(c.programs, name) {
			return c, nil
		}
	}
	err := fault.New(fault.Invalid, "there is no agent %q among those that litterbox knows", name)
	if near := Nearest(name, Names()); near != "" {
		return Client{}, err.WithHint("litterbox agent %s %s", verb, near)
	}
	return Client{}, err.WithHint("litterbox agent list")
}

// Found reports whether the client is on this machine, and by what.
func (c Client) Found(h Host) (by string, found bool) {
	for _, program := range c.programs {
		if at, err := h.Find(program); err == nil {
			return at, true
		}
	}
	for _, dir := range c.homes(h) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, true
		}
	}
	return "", false
}

// fields is the entry for the server.
func (c Client) fields(command string, exclusive bool) patch.Object {
	fields := c.entry(command)
	if exclusive {
		fields = append(fields, c.granted...)
	}
	return fields
}
