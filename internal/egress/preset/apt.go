package preset

import (
	"path/filepath"
	"slices"
	"strings"
)

// readApt reads apt's sources (sources.list(5)), in both formats.
func readApt(r *reader) {
	main := r.root("etc/apt/sources.list")
	r.aptLines(main)
	for _, path := range r.among("etc/apt/sources.list.d", "") {
		switch filepath.Ext(path) {
		case ".list":
			r.aptLines(path)
		case ".sources":
			r.aptStanzas(path)
		}
	}
	if len(r.preset.Rules) == 0 && !r.preset.Local && r.preset.Problem == "" {
		r.problem("this machine has no apt sources")
	}
}

// aptLines reads "deb [options] URI suite component…".
func (r *reader) aptLines(path string) {
	for line := range strings.Lines(r.file(path)) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind != "deb" && kind != "deb-src" {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			_, after, ok := strings.Cut(rest, "]")
			if !ok {
				continue
			}
			rest = after
		}
		if fields := strings.Fields(rest); len(fields) > 0 {
			r.allowSource(fields[0], path)
		}
	}
}

// aptStanzas reads the deb822 format.
func (r *reader) aptStanzas(path string) {
	text := strings.ReplaceAll(r.file(path), "\r\n", "\n")
	var stanza map[string]string
	key := ""
	finish := func() {
		off := []string{"no", "false", "without", "off", "disable", "0"}
		if !slices.Contains(off, strings.ToLower(strings.TrimSpace(stanza["enabled"]))) {
			for _, uri := range strings.Fields(stanza["uris"]) {
				r.allowSource(uri, path)
			}
		}
		stanza, key = map[string]string{}, ""
	}
	stanza = map[string]string{}
	for line := range strings.Lines(text + "\n\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			finish()
		case line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			stanza[key] += " " + trimmed
		default:
			name, value, _ := strings.Cut(trimmed, ":")
			key = strings.ToLower(strings.TrimSpace(name))
			stanza[key] = value
		}
	}
}

// allowSource adds one URI; sources on this machine need no network. apt verifies
// signatures, so most mirrors are plain http, where only reading must be allowed.
func (r *reader) allowSource(uri, path string) {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || slices.Contains([]string{"file", "copy", "cdrom"}, scheme) {
		r.preset.Local = r.preset.Local || ok
		return
	}
	if kind, method, mirrored := strings.Cut(scheme, "+"); mirrored && (kind == "mirror" || kind == "tor") {
		if method == "file" {
			r.from(path)
			r.problem(path + " names a list of mirrors, which have to be allowed by name")
			return
		}
		scheme = method
	}
	r.allow(scheme+":"+rest, path, "GET,HEAD")
}
