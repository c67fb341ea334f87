// Package profile is what is known of the agents' clients that run inside a
// sandbox: how each is started with a task, which hosts it needs, which files
// it wants to find so that it asks nothing, and how its stream reads.
//
// It is data and pure functions: it runs nothing, opens nothing and knows no
// sandbox. A client's output comes from inside and is not trusted; readers take
// any bytes.
//
// Start reading at [Profile]. To add a client: a file like claude.go, a line in
// [All], its shapes in stream_test.go, and a preset for its hosts.
package profile

import (
	"slices"
	"strings"
)

// Profile is one client.
type Profile struct {
	Name     string // as it is typed
	Title    string
	Programs []string // its names on $PATH
	Package  string   // in the npm registry; empty where it is not there
	Binaries []string // below an installation by npm, the first that exists

	Preset  string   // of the network: the hosts that it needs, by name; may be empty
	Allow   []string // rules besides the preset
	Passed  []string // variables that go in unchanged; if one is an address, its host is allowed
	Quiet   []string // further hosts that it asks for, for statistics and updates: refusing them is not a fault
	QuietAt []Quiet  // refusals at hosts that it needs, which it can do without
	Keys    []Key    // keys that it logs in with, besides logins that it keeps in files (package login)
	// Several says that its keys and logins belong to several providers: they all
	// count, while a key of any other client counts before its login.
	Several bool

	Env   []string // K=V
	Files func(Place) []File

	Belongings []Belonging // of the human's own, that go in too

	Headless func(Task) []string // arguments; the task is on its standard input, unless they hold it
	Screen   func(Task) []string // arguments of its own full-screen interface
	NewRead  func() Reader       // of the output of Headless
	// Pieces are the lines of the stream that have a part of a text alone.
	Pieces []PieceOf

	// Forgets says that it keeps no conversation in which its model has not answered.
	Forgets bool

	// Bound says that the client cannot be told to ignore the denials in the
	// project's settings.
	Bound bool

	Install []string // a command that installs it inside; for clients of the user's own
	Secrets []string // names below [secrets]; likewise
}

// Key is a variable that a client takes an API key from.
type Key struct {
	Variable string
	Hosts    []string // that it is sent to
}

// Place is where a client works.
type Place struct {
	Home, Project string
	Login         bool   // it is logged in by a file, not by a key
	KeyTail       string // the end of its key's placeholder: it asks about a key whose end it has not seen
}

// File is a file of the client below HOME.
type File struct {
	Path string // relative to HOME
	// Merge are values that a file of JSON or TOML must hold; everything else in
	// it stays. An existing value stays too, unless Force.
	Merge map[string]any
	Force bool
}

// Task is the work for a client.
type Task struct {
	Prompt  string
	Model   string
	Resume  bool   // go on with the last conversation
	Session string // that one, where it is known
	Project string
	Extra   []string // after --, as typed
	// Exclusive: the repository has litterbox's settings that deny the client its
	// own tools. They are meant for a client outside.
	Exclusive bool
	Settings  string // the project's settings without them, for a client that takes others instead
}

// All are the clients that are built in.
func All() []Profile { return []Profile{claude(), codex(), gemini(), opencode()} }

// Names lists them.
func Names() []string {
	var names []string
	for _, p := range All() {
		names = append(names, p.Name)
	}
	return names
}

// ByName finds one of them.
func ByName(name string) (Profile, bool) {
	all := All()
	i := slices.IndexFunc(all, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return all[i], true
}

// Own is a client of the user's own. In its command {prompt}, {model} and
// {project} are replaced; without {prompt} the task is on standard input.
func Own(name string, command, install, allow, secrets []string) Profile {
	fill := func(t Task) []string {
		replace := strings.NewReplacer("{prompt}", t.Prompt, "{model}", t.Model, "{project}", t.Project)
		var argv []string
		for _, argument := range command[1:] {
			argv = append(argv, replace.Replace(argument))
		}
		return append(argv, t.Extra...)
	}
	return Profile{
		Name: name, Title: name, Programs: command[:1], Allow: allow, Install: install, Secrets: secrets,
		Headless: fill, Screen: fill, NewRead: func() Reader { return lines{} },
	}
}

// optional is flag and value, or nothing without a value.
func optional(flag, value string) []string {
	if value == "" {
		return nil
	}
	return []string{flag, value}
}

// NameOf makes a sandbox's name from a task: its first words, without those that
// say nothing.
func NameOf(prompt string) string {
	const words, longest = 4, 40
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	var kept []string
	for _, word := range strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	}) {
		if slices.Contains(fillers, word) || len(kept) == words {
			continue
		}
		if len(strings.Join(append(kept, word), "-")) > longest {
			break
		}
		kept = append(kept, word)
	}
	if len(kept) == 0 {
		return "task"
	}
	return strings.Join(kept, "-")
}

var fillers = strings.Fields("a an and are as at be by for from i in into is it its of on or our please so that the their then there this to us we with you your")

// IsQuiet reports whether the client asks for a host only for statistics or
// updates.
func (p Profile) IsQuiet(host string) bool {
	return slices.ContainsFunc(p.Quiet, func(quiet string) bool {
		below, wild := strings.CutPrefix(quiet, "*")
		return host == quiet || wild && strings.HasSuffix(host, below)
	})
}

// Quiet is a refusal that is not a fault: at a host and the beginning of a path,
// for a reason that has these words. The same request refused for any other
// reason, as for a missing rule or a reached budget, is one.
type Quiet struct{ At, Why string }

// Words of reasons, as the keeper's hooks have them.
const (
	notLent     = "sends the placeholder of "               // a secret or login that is not for there
	noWebsocket = "calls over websockets cannot be metered" // the client goes on without
)

// IsQuietAt reports whether the client can do without a path of a host that it
// was refused for that reason.
func (p Profile) IsQuietAt(host, path, why string) bool {
	return path != "" && slices.ContainsFunc(p.QuietAt, func(quiet Quiet) bool {
		return strings.HasPrefix(host+path, quiet.At) && strings.Contains(why, quiet.Why)
	})
}
