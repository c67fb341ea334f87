// Package template writes the first .litterbox.toml of a repository: with what
// its files say (lock files, versions of tools, services of compose files, dev
// container definitions), or for one kind of project. It reads the checkout,
// runs nothing and writes no file.
//
// Start reading at [Look].
package template

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Draft is a draft of a configuration.
type Draft struct {
	Found    []string // the source of each part, a sentence each
	Image    string
	Setup    []setup
	Presets  []string // of network.allow
	Services []service
	Ports    []port
	Env      map[string]string
	Tools    map[string]wanted // by name
	CPUs     string
	Memory   string
	Notes    []string // comments at the end: findings without a key
}

// setup is a command that makes a new sandbox ready.
type setup struct {
	command string // of a shell
	why     string
}

// wanted is the exact version of a tool and the file that names it.
type wanted struct{ version, file string }

type service struct {
	name, why string
	command   []string
	ready     string // TOML of its value
	off       string // why it is only a comment; empty if it is in force
}

type port struct {
	name   string
	number int
}

// Look drafts a configuration from the files at the top of a checkout. installed
// reports whether a program is on this machine.
func Look(top string, installed func(program string) bool) (Draft, error) {
	dir, err := os.OpenRoot(top)
	if err != nil {
		return Draft{}, fault.Wrap(fault.Unavailable, err, "cannot look at %q", top)
	}
	defer dir.Close()
	l := &looker{dir: dir, installed: installed}
	l.languages()
	l.versions()
	l.compose()
	l.devContainer()
	slices.Sort(l.Presets)
	l.Presets = slices.Compact(l.Presets)
	return l.Draft, nil
}

// looker reads a checkout. Unreadable files count as missing.
type looker struct {
	Draft
	dir       *os.Root
	installed func(string) bool
}

// largest is how much of a file is read at most.
const largest = 1 << 20

func (l *looker) read(name string) (string, bool) {
	info, err := l.dir.Stat(name) // a link that leads out of the checkout is an error
	if err != nil || !info.Mode().IsRegular() || info.Size() > largest {
		return "", false
	}
	f, err := l.dir.Open(name)
	if err != nil {
		return "", false
	}
	data, err := io.ReadAll(io.LimitReader(f, largest))
	return string(data), errors.Join(err, f.Close()) == nil
}

func (l *looker) has(names ...string) string {
	for _, name := range names {
		if info, err := l.dir.Stat(name); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

func (l *looker) found(sentence string) { l.Found = append(l.Found, plain(sentence)) }
func (l *looker) note(sentence string)  { l.Notes = append(l.Notes, plain(sentence)) }

// Names returns the names of the templates.
func Names() []string { return []string{"node", "python", "go", "rust", "full"} }

// Of returns the draft for one kind of project, whatever the checkout holds.
func Of(name string) (Draft, error) {
	kinds := map[string]Draft{
		"node":   {Setup: []setup{{"npm ci", "installs what package-lock.json names"}}, Presets: []string{"preset:npm"}},
		"python": {Setup: []setup{{venv + "requirements.txt", "makes .venv and installs requirements.txt"}}, Presets: []string{"preset:pip"}},
		"go":     {Setup: []setup{{"go mod download", "downloads the modules of go.mod"}}, Presets: []string{"preset:go"}},
		"rust":   {Setup: []setup{{"cargo fetch", "downloads the crates of Cargo.toml"}}, Presets: []string{"preset:cargo"}},
	}
	if draft, ok := kinds[name]; ok {
		draft.Found = []string{"the template " + name}
		return draft, nil
	}
	if name != "full" {
		return Draft{}, fault.New(fault.Invalid, "cannot use the template %q: the templates are %s", name, strings.Join(Names(), ", ")).
			WithHint("litterbox init --template node")
	}
	full := Draft{Found: []string{"the template full"}, Ports: []port{{"web", 8080}}, CPUs: "4", Memory: "8GiB", Env: map[string]string{"CI": "true"}}
	for _, kind := range Names()[:4] {
		full.Presets = append(full.Presets, kinds[kind].Presets...)
		full.Setup = append(full.Setup, setup{onlyWith[kind] + kinds[kind].Setup[0].command + "; fi", kinds[kind].Setup[0].why})
	}
	full.Services = []service{postgres("db", "a database", "")}
	full.Services[0].off = "take the # away where PostgreSQL is installed"
	return full, nil
}

var onlyWith = map[string]string{
	"node": "if [ -f package-lock.json ]; then ", "python": "if [ -f requirements.txt ]; then ",
	"go": "if [ -f go.mod ]; then ", "rust": "if [ -f Cargo.toml ]; then ",
}

// plain returns text from a checkout in a form safe for a comment.
func plain(text string) string {
	text = strings.ToValidUTF8(text, "?")
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text[:min(len(text), 300)])
}

// quoted returns a TOML basic string; JSON strings are such (toml.io, "String").
func quoted(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(strings.ToValidUTF8(text, "?")) // a string always can be
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

func quotedList(texts []string) string {
	all := make([]string, len(texts))
	for n, text := range texts {
		all[n] = quoted(text)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
