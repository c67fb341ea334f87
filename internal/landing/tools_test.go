package landing_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// realTool is a use of a tool in a repository that runs the text of a risky file.
type realTool struct {
	tool  string            // must be in PATH, or in the directory of installed tools
	file  string            // the one that the table names
	text  string            // creates the file $CANARY
	mode  os.FileMode       // 0: not executable
	other map[string]string // what the tool needs besides it
	run   string            // for sh -e, in the repository
	heavy bool              // only where LITTERBOX_TEST_TOOLS names a directory
}

const inNode = `require("fs").writeFileSync(process.env.CANARY, "");`

// realTools are those that can be installed by npm and go, or are on most
// machines.
func realTools() []realTool {
	python := "import os\nopen(os.environ['CANARY'], 'w').close()\n"
	esm := `import fs from "node:fs"; fs.writeFileSync(process.env.CANARY, ""); export default `
	return []realTool{
		{tool: "make", file: "Makefile", text: "all:\n\ttouch $(CANARY)\n", run: "make"},
		{tool: "make", file: "GNUmakefile", text: "X := $(shell touch $(CANARY))\nall:\n", run: "make"},
		{tool: "python3", file: "sitecustomize.py", text: python, run: "PYTHONPATH=. python3 -c ''"},
		{tool: "python3", file: "setup.py", text: python + "from distutils.core import setup\n", run: "python3 setup.py --version || true"},
		{tool: "python3", file: ".pdbrc", text: "import os; open(os.environ['CANARY'], 'w').close()\n", other: map[string]string{"x": "pass\n"}, run: "python3 -m pdb x </dev/null || true"},
		{tool: "perl", file: "Makefile.PL", text: "open(F, '>', $ENV{CANARY});\n", run: "perl Makefile.PL"},
		{tool: "vim", file: ".exrc", text: "call writefile([], $CANARY)\n", run: "vim -N -i NONE -T dumb --not-a-term --cmd 'set exrc' -c 'qa!' </dev/null || true"},
		{tool: "npm", file: "package.json", text: `{"scripts":{"postinstall":"touch $CANARY"}}`, run: "npm install --offline --no-audit --no-fund"},
		{tool: "npm", file: ".npmrc", text: "script-shell=./sh\n", other: map[string]string{"sh": "#!/bin/sh\ntouch $CANARY\n", "package.json": `{"scripts":{"x":"true"}}`}, run: "chmod 755 sh; npm run x"},
		{tool: "git", file: ".githooks/post-checkout", text: "#!/bin/sh\ntouch $CANARY\n", mode: 0o755, run: "git config core.hooksPath .githooks; git checkout -q -b other"},
		{tool: "go", file: "x.go", text: "package x\n\n//go:generate touch ${CANARY}\n", run: "go generate x.go"},
		{tool: "cargo", heavy: true, file: "build.rs", text: `fn main() { std::fs::write(std::env::var("CANARY").unwrap(), "").unwrap(); }`,
			other: map[string]string{"Cargo.toml": "[package]\nname = 'x'\nversion = '1.0.0'\n", "src/lib.rs": ""}, run: "cargo build --offline"},
		{tool: "cargo", heavy: true, file: ".cargo/config.toml", text: "[build]\nrustc-wrapper = './wrap'\n",
			other: map[string]string{"Cargo.toml": "[package]\nname = 'x'\nversion = '1.0.0'\n", "src/lib.rs": "", "wrap": "#!/bin/sh\ntouch $CANARY\nexec \"$@\"\n"}, run: "chmod 755 wrap; cargo build --offline"},
		{tool: "jest", heavy: true, file: "jest.config.js", text: inNode + "module.exports = {};", run: "jest --passWithNoTests"},
		{tool: "vitest", heavy: true, file: "vitest.config.mjs", text: esm + "{};", run: "vitest run --passWithNoTests"},
		{tool: "mocha", heavy: true, file: ".mocharc.cjs", text: inNode + "module.exports = {};", other: map[string]string{"test/x.js": ""}, run: "mocha"},
		{tool: "eslint", heavy: true, file: "eslint.config.mjs", text: esm + "[];", other: map[string]string{"x.js": ""}, run: "eslint x.js"},
		{tool: "prettier", heavy: true, file: ".prettierrc.cjs", text: inNode + "module.exports = {};", other: map[string]string{"x.js": ""}, run: "prettier x.js"},
		{tool: "stylelint", heavy: true, file: ".stylelintrc.cjs", text: inNode + "module.exports = {rules: {}};", other: map[string]string{"x.css": "a{}"}, run: "stylelint x.css || true"},
		{tool: "webpack", heavy: true, file: "webpack.config.js", text: inNode + "module.exports = {};", other: map[string]string{"src/index.js": ""}, run: "webpack || true"},
		{tool: "babel", heavy: true, file: "babel.config.js", text: inNode + "module.exports = {};", other: map[string]string{"x.js": ""}, run: "babel x.js"},
		{tool: "rollup", heavy: true, file: "rollup.config.mjs", text: esm + "{input: 'x.js'};", other: map[string]string{"x.js": ""}, run: "rollup -c || true"},
		{tool: "gulp", heavy: true, file: "gulpfile.js", text: inNode + "exports.default = d => d();", run: "ln -s $TOOLS/node_modules node_modules; gulp || true"},
		{tool: "husky", heavy: true, file: ".husky/post-checkout", text: "touch $CANARY\n", run: "husky; git checkout -q -b other"},
		{tool: "task", heavy: true, file: "Taskfile.yaml", text: "version: '3'\ntasks:\n  default: touch $CANARY\n", run: "task"},
		{tool: "direnv", heavy: true, file: ".envrc", text: "touch $CANARY\n", run: "direnv allow; direnv exec . true"},
		{tool: "lefthook", heavy: true, file: ".lefthook.toml", text: "[post-checkout.commands.x]\nrun = 'touch $CANARY'\n", run: "lefthook install; git checkout -q -b other"},
		{tool: "mage", heavy: true, file: "magefile.go", text: "//go:build mage\n\npackage main\n\nimport \"os\"\n\nfunc X() { os.Create(os.Getenv(\"CANARY\")) }\n", other: map[string]string{"go.mod": "module x\n\ngo 1.21\n"}, run: "mage x"},
	}
}

// The table is true of the tools: each runs the text of the file, and the same
// use without the file runs nothing.
func TestRealTools(t *testing.T) {
	installed, human := os.Getenv("LITTERBOX_TEST_TOOLS"), os.Getenv("HOME")
	path := os.Getenv("PATH")
	if installed != "" {
		path = filepath.Join(installed, "node_modules", ".bin") + ":" + filepath.Join(installed, "bin") + ":" + path
	}
	for _, c := range realTools() {
		t.Run(c.tool+" "+strings.ReplaceAll(c.file, "/", "_"), func(t *testing.T) {
			if c.heavy && installed == "" {
				t.Skip("make test-tools runs it")
			}
			if found := landing.Risky([]landing.Change{{Path: c.file, NewMode: 0o100644, Status: 'A'}}); len(found) != 1 && c.tool != "go" {
				t.Errorf("the table does not name %q", c.file)
			}
			if c.run == "" {
				t.Fatal("nothing is run")
			}
			for _, with := range []bool{true, false} {
				dir, home := gittest.Repository(t), t.TempDir()
				canary := filepath.Join(home, "canary")
				write := func(name, text string, mode os.FileMode) {
					name = filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(name, []byte(text), mode); err != nil {
						t.Fatal(err)
					}
				}
				if with {
					write(c.file, c.text, 0o644|c.mode)
				}
				for name, text := range c.other {
					write(name, text, 0o644)
				}
				cmd := exec.CommandContext(gittest.Context(t), "sh", "-ec", "command -v "+c.tool+" >/dev/null || exit 77\n"+c.run)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+path, "CANARY="+canary, "TOOLS="+installed, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home,
					"GOFLAGS=-mod=mod", "CI=1", "npm_config_cache="+filepath.Join(home, "npm"), "MAGEFILE_CACHE="+filepath.Join(home, "mage"))
				// Versions of tools are kept there by their managers.
				for _, variable := range []string{"CARGO_HOME=.cargo", "RUSTUP_HOME=.rustup", "PYENV_ROOT=.pyenv"} {
					name, below, _ := strings.Cut(variable, "=")
					if own := filepath.Join(human, below); os.Getenv(name) == "" && exists(own) {
						cmd.Env = append(cmd.Env, name+"="+own)
					}
				}
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 77 {
					if installed != "" && c.heavy {
						t.Fatalf("%s is not installed", c.tool)
					}
					t.Skipf("there is no %s", c.tool)
				}
				if ran := exists(canary); ran != with {
					t.Errorf("with the file: %t; code ran: %t (%v)\n%s", with, ran, err, out)
				}
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
