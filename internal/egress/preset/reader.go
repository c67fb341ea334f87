package preset

import (
	"errors"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds a configuration file; real ones have a few kB.
const maxFile = 1 << 20

// defaults is what From says where no configuration was found.
const defaults = "the tool's default"

// reader gathers one preset.
type reader struct {
	env    Environment
	preset Preset
}

// file reads a configuration file; "" when there is none.
func (r *reader) file(path string) string {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || path == "":
		return ""
	case err != nil:
		r.problem("cannot read " + path)
		return ""
	case len(data) > maxFile:
		r.problem(path + " is too long")
		return ""
	}
	return string(data)
}

func (r *reader) home(parts ...string) string {
	if r.env.Home == "" {
		return ""
	}
	return filepath.Join(append([]string{r.env.Home}, parts...)...)
}

func (r *reader) root(parts ...string) string {
	root := r.env.Root
	if root == "" {
		root = "/"
	}
	return filepath.Join(append([]string{root}, parts...)...)
}

func (r *reader) project(parts ...string) string {
	if r.env.Project == "" {
		return ""
	}
	return filepath.Join(append([]string{r.env.Project}, parts...)...)
}

// config is a path below the user's configuration directory.
func (r *reader) config(parts ...string) string {
	if dir := r.env.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(append([]string{dir}, parts...)...)
	}
	return r.home(append([]string{".config"}, parts...)...)
}

func (r *reader) from(source string) {
	if !slices.Contains(r.preset.From, source) {
		r.preset.From = append(r.preset.From, source)
	}
}

func (r *reader) problem(text string) {
	if r.preset.Problem != "" {
		text = r.preset.Problem + "; " + text
	}
	r.preset.Problem = text
}

// allow adds the host of a registry's URL, and records where the URL was
// found. Methods, if given, limit plain http, where they can be seen.
func (r *reader) allow(text, source, methods string) {
	r.from(source)
	parsed, err := url.Parse(strings.TrimSpace(text))
	if err != nil || !oneHost(parsed.Hostname()) {
		r.problem(source + " names something that is not a URL") // and may hold a password
		return
	}
	host := strings.ToLower(parsed.Hostname())
	target := authority(host, parsed.Port())
	switch parsed.Scheme {
	case "http":
		if methods != "" {
			methods += " "
		}
		r.preset.Rules = append(r.preset.Rules, methods+"http://"+target)
	case "https":
		r.preset.Rules = append(r.preset.Rules, "https://"+target)
	case "ssh", "git+ssh":
		r.preset.Rules = append(r.preset.Rules, authority(host, cmpPort(parsed.Port(), "22")))
	default:
		r.problem(source + " names a " + printable(parsed.Scheme) + " URL, which no rule covers")
		return
	}
	standard := map[string]string{"http": "80", "https": "443"}[parsed.Scheme]
	r.allowPrivate(host, cmpPort(parsed.Port(), cmpPort(standard, "22")))
}

// oneHost reports whether a host stands only for itself. A URL may hold characters
// that names and addresses do not, and in a rule an asterisk opens many hosts.
func oneHost(host string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-_.:"
	return host != "" && strings.Trim(strings.ToLower(host), plain) == ""
}

// allowPrivate adds the private addresses of a registry in the human's own
// network: a name alone never opens them.
func (r *reader) allowPrivate(host, port string) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.IsLoopback() {
			r.problem(host + " is this machine itself, and loopback inside a sandbox is the sandbox's own")
		}
		return // the rule already names the address
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		r.problem(host + " is this machine itself, and loopback inside a sandbox is the sandbox's own")
		return
	}
	if r.env.Lookup == nil {
		return
	}
	for _, addr := range r.env.Lookup(host) {
		if addr = addr.Unmap(); addr.IsPrivate() || r.env.Beside != nil && r.env.Beside(addr) {
			r.preset.Rules = append(r.preset.Rules, authority(addr.String(), port))
		}
	}
}

func cmpPort(port, otherwise string) string {
	if port == "" {
		return otherwise
	}
	return port
}

// printable keeps foreign words in messages short and plain.
func printable(word string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, word[:min(len(word), 40)])
}

// section is a part of an INI file.
type section struct {
	name   string
	values map[string]string
}

// ini reads what npm, pip and go's own file have in common: key = value lines,
// sections, comments, and values that go on in indented lines.
func ini(text string) []section {
	all := []section{{values: map[string]string{}}}
	key := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		current := &all[len(all)-1]
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case trimmed[0] == '[' && strings.HasSuffix(trimmed, "]"):
			all = append(all, section{name: strings.ToLower(strings.TrimSpace(trimmed[1 : len(trimmed)-1])), values: map[string]string{}})
			key = ""
		case (line[0] == ' ' || line[0] == '\t') && key != "":
			current.values[key] += "\n" + trimmed
		default:
			name, value, ok := strings.Cut(trimmed, "=")
			if !ok {
				if name, value, ok = strings.Cut(trimmed, ":"); !ok {
					key = ""
					continue
				}
			}
			key = strings.TrimSpace(name)
			current.values[key] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return all
}
