package template

import (
	"bufio"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

const venv = "python3 -m venv .venv && .venv/bin/pip install -r "

// languages finds how dependencies are installed: by the lock file first.
func (l *looker) languages() {
	for _, family := range [][]installer{
		{
			{"pnpm-lock.yaml", "pnpm install --frozen-lockfile", "preset:npm"},
			{"yarn.lock", "yarn install --frozen-lockfile", "preset:npm"},
			{"bun.lock", "bun install --frozen-lockfile", "preset:npm"},
			{"bun.lockb", "bun install --frozen-lockfile", "preset:npm"},
			{"package-lock.json", "npm ci", "preset:npm"},
			{"npm-shrinkwrap.json", "npm ci", "preset:npm"},
			{"package.json", "npm install", "preset:npm"},
		},
		{
			{"uv.lock", "uv sync --frozen", "preset:pip"},
			{"poetry.lock", "poetry install", "preset:pip"},
			{"Pipfile.lock", "pipenv sync --dev", "preset:pip"},
			{"requirements.txt", venv + "requirements.txt", "preset:pip"},
			{"requirements-dev.txt", venv + "requirements-dev.txt", "preset:pip"},
			{"pyproject.toml", "python3 -m venv .venv && .venv/bin/pip install -e .", "preset:pip"},
			{"setup.py", "python3 -m venv .venv && .venv/bin/pip install -e .", "preset:pip"},
		},
		{{"go.mod", "go mod download", "preset:go"}},
		{{"Cargo.lock", "cargo fetch --locked", "preset:cargo"}, {"Cargo.toml", "cargo fetch", "preset:cargo"}},
	} {
		for _, one := range family {
			if l.has(one.file) == "" || !l.applies(one.file) {
				continue
			}
			l.found(one.file + ": dependencies")
			l.Setup = append(l.Setup, setup{one.command, one.file})
			l.Presets = append(l.Presets, one.preset)
			break
		}
	}
}

type installer struct{ file, command, preset string }

// applies looks into files that need not be about dependencies.
func (l *looker) applies(file string) bool {
	text, ok := l.read(file)
	switch file {
	case "package.json":
		var manifest struct {
			Dependencies    map[string]any `json:"dependencies"`
			DevDependencies map[string]any `json:"devDependencies"`
		}
		return ok && json.Unmarshal([]byte(text), &manifest) == nil && len(manifest.Dependencies)+len(manifest.DevDependencies) > 0
	case "pyproject.toml":
		return strings.Contains(text, "[project]") || strings.Contains(text, "[build-system]")
	case "go.mod":
		return strings.Contains(text, "require")
	}
	return true
}

// versions finds which versions of tools the project wants. Exact ones are offered
// as tools of a golden; others are left to the host's own programs, or those of
// container.base-image.
func (l *looker) versions() {
	for file, tool := range map[string]string{".nvmrc": "node", ".node-version": "node", ".python-version": "python", ".ruby-version": "ruby", "rust-toolchain": "rust"} {
		if text, ok := l.read(file); ok {
			l.version(tool, firstWord(text), file)
		}
	}
	if text, ok := l.read(".tool-versions"); ok {
		for line := range strings.Lines(text) {
			if tool, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(tool, "#") {
				l.version(tool, firstWord(version), ".tool-versions")
			}
		}
	}
	for file, pattern := range map[string]string{
		"go.mod":              `(?m)^()go\s+([0-9.]+)`,
		"rust-toolchain.toml": `(?m)^\s*()channel\s*=\s*"([^"\n]+)"`,
		"mise.toml":           `(?m)^\s*(node|python|go|rust|ruby|java)\s*=\s*"([^"\n]+)"`,
		".mise.toml":          `(?m)^\s*(node|python|go|rust|ruby|java)\s*=\s*"([^"\n]+)"`,
	} {
		text, ok := l.read(file)
		if !ok {
			continue
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, 10) {
			tool := match[1]
			if tool == "" {
				tool = map[string]string{"go.mod": "go", "rust-toolchain.toml": "rust"}[file]
			}
			l.version(tool, match[2], file)
		}
	}
}

func (l *looker) version(tool, version, file string) {
	if tool == "" || version == "" {
		return
	}
	_, twice := l.Tools[tool]
	if exact := strings.TrimPrefix(version, "v"); exactVersion().MatchString(exact) && !twice {
		if l.Tools == nil {
			l.Tools = map[string]wanted{}
		}
		l.Tools[tool] = wanted{exact, plain(file)}
		return
	}
	l.note(tool + " " + version + " (" + file + "): sandboxes use what is installed on this machine, or in container.base-image")
}

var exactVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
})

func firstWord(text string) string {
	scanner := bufio.NewScanner(strings.NewReader(text))
	scanner.Split(bufio.ScanWords)
	if !scanner.Scan() {
		return ""
	}
	return scanner.Text()
}
