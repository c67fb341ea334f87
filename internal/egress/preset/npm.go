package preset

import (
	"strings"
)

// npmRegistry is npm's default (npm help 7 config).
const npmRegistry = "https://registry.npmjs.org/"

// readNpm follows npm's order: environment, project, user, global. Scoped
// registries are used beside the main one, so they all count.
func readNpm(r *reader) {
	found := false
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if value := r.env.Getenv(name); value != "" && !found {
			r.allow(value, name, "")
			found = true
		}
	}
	user := r.env.Getenv("npm_config_userconfig")
	if user == "" {
		user = r.env.Getenv("NPM_CONFIG_USERCONFIG")
	}
	if user == "" {
		user = r.home(".npmrc")
	}
	for _, path := range []string{r.project(".npmrc"), user, r.root("usr/local/etc/npmrc"), r.root("usr/etc/npmrc"), r.root("etc/npmrc")} {
		main := ""
		for _, s := range ini(r.file(path)) {
			for key, value := range s.values {
				value = r.expand(value)
				switch {
				case key == "registry":
					main = value
				case strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry"):
					r.allow(value, path, "")
				}
			}
		}
		if main != "" && !found {
			r.allow(main, path, "")
			found = true
		}
	}
	if !found {
		r.allow(npmRegistry, defaults, "")
	}
}

// expand replaces ${NAME}, as npm does in .npmrc.
func (r *reader) expand(text string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "${")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return b.String() + "${" + rest
		}
		b.WriteString(r.env.Getenv(strings.TrimSuffix(name, "?")))
		text = after
	}
}
