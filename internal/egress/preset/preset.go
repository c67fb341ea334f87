// Package preset turns "preset:npm" into network rules.
//
// A preset of a package manager is read from the tool's own configuration on
// the host, so that only a mirror or a company's registry is allowed, and
// nothing else; presets of model providers and code hosts are a table. The
// package reads files and variables, runs no program and never shows the
// passwords that registry URLs may hold. Start reading at [Expand].
package preset

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Environment is where the tools' configuration is found.
type Environment struct {
	Getenv func(string) string
	Home   string
	Root   string // what / is; for tests
	// Project is the human's own checkout, once trusted; empty otherwise. A
	// registry named by a cloned repository would let it open a hole itself.
	Project string
	// Lookup resolves a registry's name; may be nil. A registry in the
	// human's own network also needs its private addresses allowed.
	Lookup func(host string) []netip.Addr
	// Beside tells which public addresses count as private, because they lie in
	// a network of this machine; may be nil.
	Beside func(netip.Addr) bool
}

// Host returns this machine as who sees it. Without a home only system files count.
func Host(who *caller.Caller) Environment {
	return Environment{Getenv: who.Get, Home: who.Home, Root: "/"}
}

// Preset is what one name means here.
type Preset struct {
	Name    string   `json:"name"`
	Meaning string   `json:"meaning"`
	Rules   []string `json:"rules"`
	From    []string `json:"from,omitempty"` // the deciding files and variables, and "the tool's default"
	Warning string   `json:"warning,omitempty"`
	Problem string   `json:"problem,omitempty"` // what will not work, and why
	Local   bool     `json:"local,omitempty"`   // some sources are files, which need no network
}

// tool is a preset that is read from a package manager's configuration.
//
// To add one: a line in tools, a file with its reader, a test.
type tool struct {
	name, meaning string
	read          func(*reader)
}

func tools() []tool {
	return []tool{
		{"apk", "Alpine packages, from the repositories of apk", readApk},
		{"apt", "Debian and Ubuntu packages, from the sources of apt", readApt},
		{"cargo", "Rust crates, from cargo's registries", readCargo},
		{"dnf", "Fedora and RHEL packages, from the repositories of dnf", readDnf},
		{"go", "Go modules, from GOPROXY and GOSUMDB", readGo},
		{"npm", "npm packages, from the registries in .npmrc", readNpm},
		{"pacman", "Arch packages, from the servers of pacman", readPacman},
		{"pip", "Python packages, from pip's indexes", readPip},
	}
}

// Expand returns the rules that a preset stands for. It fails with
// fault.NotFound for an unknown name, and with fault.Unsupported when the
// tool's configuration names nothing that could be allowed.
//
// No other preset is read: neither its files nor the addresses of its hosts.
func Expand(name string, env Environment) ([]string, error) {
	one, ok := find(name, env)
	if !ok {
		return nil, fault.New(fault.NotFound, "cannot find the network preset %q", name).
			WithHint("litterbox network presets")
	}
	if len(one.Rules) == 0 && !(one.Local && one.Problem == "") {
		cause := one.Problem
		if cause == "" {
			cause = "the tool is not configured here"
		}
		return nil, fault.New(fault.Unsupported, "cannot use preset:%s: %s", name, cause).
			WithHint("write the hosts themselves into the allow-list")
	}
	return one.Rules, nil
}

// find returns one preset with its meaning in env.
func find(name string, env Environment) (Preset, bool) {
	for _, t := range tools() {
		if t.name == name {
			return t.in(env), true
		}
	}
	for _, s := range services() {
		if s.name == name {
			return s.preset(), true
		}
	}
	return Preset{}, false
}

// in reads a tool's configuration.
func (t tool) in(env Environment) Preset {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	r := &reader{env: env, preset: Preset{Name: t.name, Meaning: t.meaning}}
	t.read(r)
	slices.Sort(r.preset.Rules)
	r.preset.Rules = slices.Compact(r.preset.Rules)
	return r.preset
}

// Names returns the names of every preset, sorted.
func Names() []string {
	var names []string
	for _, t := range tools() {
		names = append(names, t.name)
	}
	for _, s := range services() {
		names = append(names, s.name)
	}
	slices.Sort(names)
	return names
}

// List returns every preset with its meaning in env, sorted by name.
func List(env Environment) []Preset {
	var all []Preset
	for _, t := range tools() {
		all = append(all, t.in(env))
	}
	for _, s := range services() {
		all = append(all, s.preset())
	}
	slices.SortFunc(all, func(a, b Preset) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// For returns the name of a package manager's preset that allows host; empty if
// there is none. A program that was refused one host of an install will ask for
// the others, too.
func For(host string, env Environment) string {
	for _, t := range tools() {
		if slices.ContainsFunc(t.in(env).Rules, func(rule string) bool {
			_, name, found := strings.Cut(rule, "://")
			if !found {
				name = rule
			}
			end := strings.IndexAny(name+"/", ":/")
			return name[:end] == host
		}) {
			return "preset:" + t.name
		}
	}
	return ""
}

// authority joins a host and an optional port as rules have them.
func authority(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if number, err := strconv.ParseUint(port, 10, 16); err == nil && number > 0 {
		return host + ":" + port
	}
	return host
}
