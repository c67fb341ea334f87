package preset

import (
	"os"
	"path/filepath"
	"strings"
)

// readDnf reads the repositories of dnf (dnf.conf(5)). Its packages are signed.
func readDnf(r *reader) {
	for _, path := range r.among("etc/yum.repos.d", ".repo") {
		section, on := "", true
		var urls []string
		lists := false
		finish := func() {
			if on && section != "main" {
				for _, one := range urls {
					r.allowSource(one, path)
				}
				if lists {
					r.from(path)
					r.problem(path + " names a list of mirrors, which have to be allowed by name")
				}
			}
			on, urls, lists = true, nil, false
		}
		key := ""
		for line := range strings.Lines(r.file(path)) {
			trimmed := strings.TrimSpace(line)
			switch {
			case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
				continue
			case trimmed[0] == '[':
				finish()
				section, key = strings.Trim(trimmed, "[]"), ""
				continue
			}
			value := trimmed
			if line[0] != ' ' && line[0] != '\t' {
				var found bool
				if key, value, found = strings.Cut(trimmed, "="); !found {
					key = ""
				}
				key = strings.ToLower(strings.TrimSpace(key))
			}
			fields := strings.FieldsFunc(value, func(c rune) bool { return c == ' ' || c == '\t' || c == ',' })
			switch key {
			case "enabled":
				on = len(fields) > 0 && (fields[0] == "1" || strings.EqualFold(fields[0], "true") || strings.EqualFold(fields[0], "yes"))
			case "baseurl":
				urls = append(urls, fields...)
			case "mirrorlist", "metalink":
				urls, lists = append(urls, fields...), lists || len(fields) > 0
			}
		}
		finish()
	}
	if len(r.preset.Rules) == 0 && !r.preset.Local && r.preset.Problem == "" {
		r.problem("this machine has no dnf repositories")
	}
}

// readPacman reads the servers of pacman (pacman.conf(5)).
func readPacman(r *reader) {
	paths := append([]string{r.root("etc/pacman.conf")}, r.among("etc/pacman.d", "")...)
	for _, path := range paths {
		for line := range strings.Lines(r.file(path)) {
			key, value, found := strings.Cut(line, "=")
			if found && strings.TrimSpace(key) == "Server" {
				r.allowSource(strings.TrimSpace(value), path)
			}
		}
	}
	if len(r.preset.Rules) == 0 && !r.preset.Local && r.preset.Problem == "" {
		r.problem("this machine has no pacman servers")
	}
}

// readApk reads the repositories of apk (apk-repositories(5)): URLs, each behind its
// tag. What stands before a URL otherwise is the format or the part of it, and
// variables in it stand for no part of a host.
func readApk(r *reader) {
	paths := append([]string{r.root("etc/apk/repositories")}, r.among("etc/apk/repositories.d", ".list")...)
	for _, path := range paths {
		for line := range strings.Lines(r.file(path)) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			for _, word := range strings.Fields(line) {
				switch {
				case strings.Contains(word, "://"):
					r.allowSource(word, path)
				case word[0] == '/':
					r.allowSource("file://"+word, path)
				}
			}
		}
	}
	if len(r.preset.Rules) == 0 && !r.preset.Local && r.preset.Problem == "" {
		r.problem("this machine has no apk repositories")
	}
}

// among are the entries of a directory below the root with that extension,
// or all.
func (r *reader) among(dir, extension string) (paths []string) {
	dir = r.root(dir)
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		r.problem("cannot read " + dir)
	}
	for _, entry := range entries {
		if name := entry.Name(); extension == "" || filepath.Ext(name) == extension {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}
