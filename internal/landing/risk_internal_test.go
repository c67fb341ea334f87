package landing

import (
	"flag"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the page of risky files")

func TestRiskyFilesPage(t *testing.T) {
	const page = "../../docs/reference/risky-files.md"
	got := RiskyFilesPage()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the table says; rewrite it with -update (-want +got):\n%s", page, diff)
	}
}

// Each rule is complete, each pattern matches its example, and each class is
// explained.
func TestRiskTable(t *testing.T) {
	classes := map[Class]bool{}
	for _, c := range RiskClasses() {
		classes[c.Class] = true
	}
	seen := map[string]string{}
	for _, rule := range riskRules() {
		if !classes[rule.class] || rule.tool == "" || rule.reason == "" {
			t.Errorf("%+v is not whole", rule)
		}
		for _, p := range rule.patterns() {
			m := newMatcher([]riskRule{{class: rule.class, paths: p}})
			if other := seen[p]; other != "" {
				t.Errorf("%q is said twice: by %s and %s", p, other, rule.tool)
			}
			seen[p] = rule.tool
			name := strings.ReplaceAll(p, "*", "x")
			if strings.HasSuffix(p, "/") {
				name += "below/it"
			}
			for _, name := range []string{name, "deep/down/" + name, strings.ToUpper(name)} {
				if len(m.find(name)) == 0 {
					t.Errorf("%q does not match %q", p, name)
				}
			}
			if !strings.HasPrefix(p, "*") && len(m.find("un"+path.Base(strings.TrimSuffix(name, "/below/it")))) > 0 {
				t.Errorf("%q matches another name", p)
			}
		}
	}
}

func TestFoldName(t *testing.T) {
	for name, want := range map[string]string{
		"MAKEFILE": "makefile", "Ma\u212Aefile": "makefile", "\u017Fetup.py": "setup.py", "con\uFB01g": "config",
		".hu\u200Csky/x": ".husky/x", "Makefile. ": "makefile", "a/.../b": "a/.../b", "übung": "übung", "ÜBUNG": "übung",
	} {
		if got := foldName(name); got != want {
			t.Errorf("%q is folded to %q, want %q", name, got, want)
		}
	}
}

func TestLooks(t *testing.T) {
	for _, c := range []struct {
		name, file, before, after string
		want                      Class
		reason                    string
	}{
		{"version only", "package.json", `{"version":"1","scripts":{"test":"x"}}`, `{"version":"2","scripts": {"test":"x"}}`, "", ""},
		{"install script", "package.json", `{}`, `{"scripts":{"postinstall":"x","test":"y"}}`, Package, "npm install runs its scripts postinstall"},
		{"script", "package.json", `{"scripts":{"a":"1","b":"1"}}`, `{"scripts":{"a":"1","b":"2"}}`, Package, "npm run calls its scripts b"},
		{"removed script", "package.json", `{"scripts":{"a":"1"}}`, `{}`, "", ""},
		{"dependency", "package.json", `{}`, `{"devDependencies":{"x":"1"}}`, Dependencies, "chooses what the next install fetches and runs"},
		{"settings", "package.json", `{}`, `{"jest":{"globalSetup":"./x"}}`, Package, "settings of tools: jest"},
		{"not JSON", "package.json", `{}`, `{`, Package, "scripts and settings of npm and of many tools"},
		{"twice", "package.json", `{}`, `{"scripts":{},"scripts":{"prepare":"x"}}`, Package, "npm install runs its scripts prepare"},
		{"version", "Cargo.toml", "[package]\nversion = '1'", "[package]\nversion = '2'", "", ""},
		{"build script", "Cargo.toml", "[package]\nname = 'x'", "[package]\nname = 'x'\nbuild = 'evil.rs'", Build, "package.build: what cargo build runs"},
		{"inline", "Cargo.toml", "package = { name = 'x' }", "package = { name = 'x', build = 'evil.rs' }", Build, "package.build: what cargo build runs"},
		{"build dependency", "Cargo.toml", "", "[build-dependencies]\nx = '1'", Build, "build-dependencies: what the build script runs with"},
		{"macro", "Cargo.toml", "[lib]", "[lib]\nproc-macro = true", Build, "lib: a procedural macro, which cargo build runs"},
		{"crate", "Cargo.toml", "", "[dependencies]\nx = '1'", Dependencies, "chooses what the next build fetches and runs"},
		{"patch", "Cargo.toml", "", "[patch.crates-io]\nx = { path = 'x' }", Package, "chooses what cargo builds and runs"},
		{"backend", "pyproject.toml", "", "[build-system]\nbuild-backend = 'evil'\nbackend-path = ['.']", Package, "build-system: what pip runs to build"},
		{"pytest", "pyproject.toml", "", "[tool.pytest.ini_options]\naddopts = '-p evil'", Package, "settings of tools: pytest"},
		{"formatter", "pyproject.toml", "", "[tool.ruff]\nline-length = 1", "", ""},
		{"description", "pyproject.toml", "[project]\nname = 'x'", "[project]\nname = 'x'\ndescription = 'y'", "", ""},
		{"entry points", "pyproject.toml", "", "[project.entry-points.pytest11]\nx = 'y'", Package, "project.entry-points"},
		{"comment", "Makefile", "all:\n\techo\n", "# hello\n\nall:\n\techo\n", "", ""},
		{"comment that continued", "Makefile", "# a \\\nx: ; evil\n", "# a\nx: ; evil\n", Build, "run by make"},
		{"empty line that ended a comment", "Makefile", "# a \\\nx: ; evil\n", "# a \\\n\nx: ; evil\n", Build, "run by make"},
		{"recipe's comment", "Makefile", "all:\n\techo\n", "all:\n\t#x\n\techo\n", Build, "run by make"},
		{"recipe", "Makefile", "all:\n\techo\n", "all:\n\techo 2\n", Build, "run by make"},
		{"always", "Makefile", "all:\n", "X := $(shell evil)\nall:\n", Build, "a command that make runs whatever is made"},
		{"go", "a.go", "package a\n", "package a\n\nfunc init() {}\n", "", ""},
		{"generate", "a.go", "package a\n", "package a\n\n//go:generate sh evil\n", Build, "go generate runs: sh evil"},
		{"generate as before", "a.go", "//go:generate sh x\npackage a\n", "//go:generate sh x\npackage b\n", "", ""},
		{"cgo", "a.go", "package a\n", "package a\n// #cgo CFLAGS: -fplugin=evil.so\nimport \"C\"\n", Build, "options of the C compiler: // #cgo CFLAGS: -fplugin=evil.so"},
		{"tsconfig", "tsconfig.json", "{}", `{"compilerOptions":{"strict":true}}`, "", ""},
		{"plugins", "tsconfig.json", "{}", `{"compilerOptions":{"plugins":[{"name":"x"}]}}`, Editor, "names plugins that the editor's language server loads"},
		{"extends", "tsconfig.json", "{}", `{"extends":"./evil.json"}`, Editor, "takes over another configuration, plugins among it"},
	} {
		t.Run(c.file+" "+c.name, func(t *testing.T) {
			contents := &contents{blobs: map[string][]byte{"old": []byte(c.before), "new": []byte(c.after)}}
			change := Change{Path: c.file, OldMode: 0o100644, NewMode: 0o100644, OldOid: "old", NewOid: "new", Status: 'M'}
			risk, ok := newMatcher(riskRules()).judge(change, c.file, contents)
			if ok != (c.want != "") || risk.Class != c.want || risk.Reason != c.reason {
				t.Errorf("%v, class %q, reason %q", ok, risk.Class, risk.Reason)
			}
			// Unreadable content counts.
			delete(contents.blobs, "new")
			if _, ok := newMatcher(riskRules()).judge(change, c.file, contents); !ok {
				t.Error("what is too large does not count")
			}
		})
	}
}

func TestLinksGiveNames(t *testing.T) {
	contents := &contents{blobs: map[string][]byte{
		"1": []byte("real/dir"), "2": []byte("../a/b"), "3": []byte("loop"), "4": []byte("/etc"), "5": []byte("../.."),
	}}
	entries := &treeEntries{
		links: map[string]string{"a": "1", "x/y": "2", "loop": "3", "abs": "4", "up/up": "5"},
		parts: map[string]int{"nested": hasHead | hasConfig, "half": hasHead},
	}
	aliases := entries.aliases(contents)
	for name, want := range map[string][]string{
		"real/dir/f":   {"a/f"},
		"real/dir/b/f": {"x/y/f", "a/b/f"},
		"other":        nil,
	} {
		if diff := cmp.Diff(want, aliases.of(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if !entries.bare("nested/hooks/x") || entries.bare("half/x") || entries.bare("nested2/x") {
		t.Error("bare repositories are not told from others")
	}
}

// Patterns have no other wildcard than the star, and it means what path.Match says.
func TestStarsOfPatterns(t *testing.T) {
	for _, rule := range riskRules() {
		if strings.ContainsAny(rule.paths, `?[]\`) {
			t.Errorf("%q has more than stars", rule.paths)
		}
	}
	words := func(letters string, most int) []string {
		all := []string{""}
		for at := 0; at < len(all); at++ {
			if len(all[at]) < most {
				for _, letter := range letters {
					all = append(all, all[at]+string(letter))
				}
			}
		}
		return all
	}
	for _, pattern := range words("ab*", 5) {
		for _, name := range words("ab", 5) {
			want, err := path.Match(pattern, name)
			if got := components(pattern)[0].matches(name); err != nil || got != want {
				t.Fatalf("%q and %q: %v, want %v", pattern, name, got, want)
			}
		}
	}
}
