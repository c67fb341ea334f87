package landing

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/pelletier/go-toml/v2"
)

// lookAtPackageJSON tells scripts, settings and dependencies apart from mere
// descriptions of the package (docs.npmjs.com, "package.json").
func lookAtPackageJSON(before, after []byte, whole finding) finding {
	var old, now map[string]json.RawMessage
	if json.Unmarshal(after, &now) != nil || len(before) > 0 && json.Unmarshal(before, &old) != nil {
		return whole
	}
	describing := []string{
		"name", "version", "description", "keywords", "author", "contributors", "maintainers", "license", "licenses", "homepage",
		"bugs", "repository", "private", "funding", "sideEffects", "files", "os", "cpu", "engines", "man", "types", "typings",
		"main", "module", "exports", "browser", "type",
	}
	var settings []string
	dependencies, scripts := false, []string(nil)
	for _, key := range changedKeys(compacted(old), compacted(now)) {
		switch {
		case key == "scripts":
			scripts = changedScripts(old[key], now[key])
			if scripts == nil {
				return whole
			}
		case strings.HasSuffix(strings.ToLower(key), "dependencies"), slices.Contains([]string{"overrides", "resolutions", "workspaces", "catalog", "dependenciesMeta", "peerDependenciesMeta"}, key):
			dependencies = true
		case !slices.Contains(describing, key):
			settings = append(settings, key)
		}
	}
	at := []string{"preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish", "dependencies"}
	self := slices.DeleteFunc(slices.Clone(scripts), func(s string) bool { return !slices.Contains(at, s) })
	switch {
	case len(self) > 0:
		return finding{whole.class, "npm install runs its scripts " + some(self)}
	case len(scripts) > 0:
		return finding{whole.class, "npm run calls its scripts " + some(scripts)}
	case len(settings) > 0:
		return finding{whole.class, "settings of tools: " + some(settings)}
	case dependencies:
		return finding{Dependencies, "chooses what the next install fetches and runs"}
	}
	return finding{}
}

// changedScripts names the scripts that are new or changed; nil where they cannot
// be read.
func changedScripts(before, after json.RawMessage) []string {
	var old, now map[string]json.RawMessage
	if len(after) > 0 && json.Unmarshal(after, &now) != nil || len(before) > 0 && json.Unmarshal(before, &old) != nil {
		return nil
	}
	names := []string{}
	for _, name := range changedKeys(compacted(old), compacted(now)) {
		if _, has := now[name]; has {
			names = append(names, name)
		}
	}
	return names
}

func compacted(from map[string]json.RawMessage) map[string]any {
	to := make(map[string]any, len(from))
	for key, value := range from {
		var b bytes.Buffer
		if json.Compact(&b, value) == nil {
			to[key] = b.String()
		}
	}
	return to
}

// changedKeys lists the keys with other values, in order.
func changedKeys(before, after map[string]any) []string {
	keys := map[string]bool{}
	for key := range before {
		keys[key] = true
	}
	for key := range after {
		keys[key] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool { return reflect.DeepEqual(before[key], after[key]) })
}

// some names the first of a list, safe to print.
func some(names []string) string {
	shown := git.Printable(strings.Join(names[:min(4, len(names))], ", "))
	if len(names) > 4 {
		shown += " and others"
	}
	return shown
}

// tables reads TOML before and after a change.
func tables(before, after []byte) (old, now map[string]any, ok bool) {
	if toml.Unmarshal(after, &now) != nil || toml.Unmarshal(before, &old) != nil {
		return nil, nil, false
	}
	return old, now, true
}

func table(of map[string]any, key string) map[string]any {
	t, _ := of[key].(map[string]any)
	return t
}

// lookAtCargo: doc.rust-lang.org/cargo, "The Manifest Format". Code runs while
// cargo builds from a build script, its dependencies and procedural macros.
func lookAtCargo(before, after []byte, whole finding) finding {
	old, now, ok := tables(before, after)
	if !ok {
		return whole
	}
	dependencies := false
	for _, key := range changedKeys(old, now) {
		switch key {
		case "features", "profile", "lints", "badges", "bin", "example", "test", "bench":
		case "dependencies", "dev-dependencies":
			dependencies = true
		case "build-dependencies":
			return finding{Build, "build-dependencies: what the build script runs with"}
		case "package":
			for _, field := range changedKeys(table(old, key), table(now, key)) {
				switch field {
				case "build", "links":
					return finding{Build, "package." + field + ": what cargo build runs"}
				case "metadata", "workspace":
					return whole
				}
			}
		case "lib":
			if slices.ContainsFunc(changedKeys(table(old, key), table(now, key)), func(field string) bool {
				return strings.HasPrefix(field, "proc") || field == "plugin" || field == "crate-type"
			}) {
				return finding{Build, "lib: a procedural macro, which cargo build runs"}
			}
		default: // target, patch, replace, workspace, and new keys
			return whole
		}
	}
	if dependencies {
		return finding{Dependencies, "chooses what the next build fetches and runs"}
	}
	return finding{}
}

// lookAtPyproject: packaging.python.org, "pyproject.toml specification".
func lookAtPyproject(before, after []byte, whole finding) finding {
	old, now, ok := tables(before, after)
	if !ok {
		return whole
	}
	var found finding
	for _, key := range changedKeys(old, now) {
		switch key {
		case "build-system":
			return finding{Package, "build-system: what pip runs to build"}
		case "tool":
			harmless := []string{"black", "isort", "ruff", "codespell", "pyright"}
			tools := slices.DeleteFunc(changedKeys(table(old, key), table(now, key)), func(tool string) bool { return slices.Contains(harmless, tool) })
			if len(tools) > 0 {
				found = finding{Package, "settings of tools: " + some(tools)}
			}
		case "project":
			for _, field := range changedKeys(table(old, key), table(now, key)) {
				switch field {
				case "name", "version", "description", "readme", "requires-python", "license", "license-files", "authors", "maintainers", "keywords", "classifiers", "urls":
				case "dependencies", "optional-dependencies":
					if found.class == "" {
						found = finding{Dependencies, "chooses what the next install fetches and runs"}
					}
				default:
					found = finding{Package, "project." + git.Printable(field)}
				}
			}
		case "dependency-groups":
			if found.class == "" {
				found = finding{Dependencies, "chooses what the next install fetches and runs"}
			}
		default:
			return whole
		}
	}
	return found
}

// lookAtMakefile leaves out changes of comments and empty lines only, and says
// when a line runs a command for every target.
func lookAtMakefile(before, after []byte, whole finding) finding {
	old, now := makeLines(before), makeLines(after)
	if slices.Equal(old, now) {
		return finding{}
	}
	had := map[string]bool{}
	for _, line := range old {
		had[line] = true
	}
	for _, line := range now {
		if had[line] {
			continue
		}
		for _, always := range []string{"$(shell", "${shell", "!=", "$(eval", "${eval", "$(file", "$(guile", "load ", "include"} {
			if strings.Contains(line, always) {
				return finding{whole.class, "a command that make runs whatever is made"}
			}
		}
	}
	return whole
}

// makeLines drops comments and empty lines, except where a backslash or define
// makes them part of something else.
func makeLines(content []byte) []string {
	text := string(content)
	if strings.Contains(text, "define") {
		return []string{text}
	}
	var lines []string
	continued := false
	for line := range strings.SplitSeq(text, "\n") {
		goesOn := strings.HasSuffix(strings.TrimRight(line, "\r"), `\`)
		drop := strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimLeft(line, " "), "#")
		if continued || goesOn || !drop || strings.HasPrefix(line, "\t") {
			lines = append(lines, line)
		}
		continued = goesOn
	}
	return lines
}

// lookAtGo finds new go generate commands and cgo options.
func lookAtGo(before, after []byte, whole finding) finding {
	had := map[string]bool{}
	for line := range strings.Lines(string(before)) {
		had[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(string(after)) {
		line = strings.TrimSpace(line)
		switch {
		case had[line]:
		case strings.HasPrefix(line, "//go:generate"):
			return finding{whole.class, "go generate runs: " + git.Printable(strings.TrimSpace(strings.TrimPrefix(line, "//go:generate")))}
		case strings.Contains(line, "#cgo"):
			return finding{whole.class, "options of the C compiler: " + git.Printable(line)}
		}
	}
	return finding{}
}

// lookAtPlugins: typescriptlang.org/tsconfig. Of the compiler's configuration
// only plugins run, which the editor's server loads.
func lookAtPlugins(before, after []byte, whole finding) finding {
	if bytes.Contains(after, []byte("plugins")) || bytes.Contains(after, []byte(`\u`)) {
		return whole
	}
	if old := extending(before); !slices.Equal(old, extending(after)) && len(extending(after)) > 0 {
		return finding{whole.class, "takes over another configuration, plugins among it"}
	}
	return finding{}
}

func extending(content []byte) []string {
	var lines []string
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, "extends") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
