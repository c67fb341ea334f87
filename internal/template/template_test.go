package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/template"
)

// layout is a project, and what its configuration must and must not hold.
type layout struct {
	files map[string]string
	want  []string
	never []string
}

func layouts() map[string]layout {
	return map[string]layout{
		"empty": {files: map[string]string{"README": "x"}, want: []string{"nothing that it knows"}, never: []string{"[container]", "[network]"}},
		"npm": {files: map[string]string{"package.json": `{"dependencies":{"a":"1"}}`, "package-lock.json": "{}", ".nvmrc": "v20.1\n"},
			want: []string{"npm ci", `"preset:npm"`, "node v20.1"}},
		"exact versions": {files: map[string]string{".nvmrc": "v22.11.0\n", "go.mod": "module x\n\ngo 1.26.1\n", ".python-version": "3.12\n", ".tool-versions": "node 20.0.0\n"},
			want: []string{"# [tools]\n# go = \"1.26.1\" # go.mod\n# node = \"", "python 3.12 (.python-version): sandboxes use what is installed"}, never: []string{"[tools]", "go = "}},
		"pnpm": {files: map[string]string{"package.json": `{}`, "pnpm-lock.yaml": "x", "package-lock.json": "{}"},
			want: []string{"pnpm install --frozen-lockfile"}, never: []string{"npm ci"}},
		"node without dependencies": {files: map[string]string{"package.json": `{"name":"x"}`}, never: []string{"npm install", "preset:npm"}},
		"python": {files: map[string]string{"requirements.txt": "flask\n", ".python-version": "3.12\n"},
			want: []string{"python3 -m venv", `"preset:pip"`, "python 3.12"}},
		"uv":   {files: map[string]string{"pyproject.toml": "[project]\n", "uv.lock": "x"}, want: []string{"uv sync --frozen"}, never: []string{"venv"}},
		"go":   {files: map[string]string{"go.mod": "module x\n\ngo 1.26\n\nrequire y v1.0.0\n"}, want: []string{"go mod download", `"preset:go"`, "go 1.26"}},
		"rust": {files: map[string]string{"Cargo.toml": "[package]\n", "Cargo.lock": "x", "rust-toolchain.toml": "[toolchain]\nchannel = \"1.80\"\n"}, want: []string{"cargo fetch --locked", "rust 1.80"}},
		"compose": {files: map[string]string{"compose.yaml": "services:\n  db:\n    image: postgres:16 # here\n    ports:\n      - 5432:5432\n  cache:\n    image: \"redis:7\"\n  odd:\n    image: corp/odd\nvolumes:\n  data:\n"},
			want: []string{"[container.services.db]", "initdb", "# [container.services.cache]", "is not installed", "odd of compose.yaml"}, never: []string{"services.data", "# [container.services.db]"}},
		"dev container": {files: map[string]string{".devcontainer/devcontainer.json": "{ // a comment\n \"image\": \"mcr.example/base:1\", \"forwardPorts\": [3000, \"db:5432\"],\n \"postCreateCommand\": [\"make\", \"it's\"], \"containerEnv\": {\"A\": \"1\", \"B\": \"${localEnv:B}\"}, }"},
			want: []string{`base-image = "mcr.example/base:1"`, `"port-3000" = 3000`, "make", `"A" = "1"`}, never: []string{`"B" =`}},
		"many": {files: map[string]string{"package-lock.json": "{}", "go.mod": "module x\nrequire y v1\n", "Cargo.toml": "", "poetry.lock": "", ".tool-versions": "node 20\n# no\ngo 1.26\n"},
			want: []string{`["preset:cargo", "preset:go", "preset:npm", "preset:pip"]`, "poetry install", "node 20"}},
		"hostile": {files: map[string]string{".nvmrc": "1\n[network]\nallow=[\"x\"]", ".python-version": "\x1b[2J\"\"\"", "docker-compose.yml": "services:\n  \"a]\\nx\":\n    image: redis\n  ../..:\n    image: x\x1b\n", ".devcontainer.json": `{"image":"a\"\nb","postCreateCommand":"echo \"\"\" ; x\u007f"}`},
			never: []string{"\x1b", "\x7f", `allow=["x"]`}},
	}
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	for name, l := range layouts() {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			for file, content := range l.files {
				path := filepath.Join(top, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			draft, err := template.Look(top, func(program string) bool { return program == "postgres" })
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, draft, l.want, l.never)
		})
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, name := range template.Names() {
		draft, err := template.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, draft, []string{"the template " + name, "setup-command"}, nil)
	}
	if _, err := template.Of("cobol"); err == nil {
		t.Error("there is a template for cobol")
	}
}

func TestFromLima(t *testing.T) {
	t.Parallel()
	draft, err := template.FromLima(".lima-sandbox.toml", []byte("project = \"app\"\n[vm]\ncpus = 4\nmemory = \"8GiB\"\ndisk = \"30GiB\"\n[tools]\nnodejs = \"20\"\n[hooks]\npost_sync = \"npm ci\"\n[sync.to]\nexclude = [\"node_modules/\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, draft, []string{"cpus = 4", `memory = "8GiB"`, "npm ci", `"preset:npm"`, "tools.nodejs = 20", "project = app", "[sync]"}, nil)
	if _, err := template.FromLima("x", []byte("= broken")); err == nil {
		t.Error("a broken file was read")
	}
}

// wantText checks a draft for words, and with our own reader of configurations.
func wantText(t *testing.T, draft template.Draft, want, never []string) {
	t.Helper()
	text := draft.Text()
	for _, word := range want {
		if !strings.Contains(text, word) {
			t.Errorf("%q is missing in\n%s", word, text)
		}
	}
	for _, word := range never {
		for line := range strings.Lines(text) {
			if strings.Contains(line, word) && (!strings.HasPrefix(line, "#") || strings.ContainsAny(word, "\x1b\x7f") || strings.Contains(word, "services")) {
				t.Errorf("%q is in\n%s", word, text)
			}
		}
	}
	if _, err := config.Parse(".litterbox.toml", []byte(text)); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}
