package preset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/preset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// FuzzTools puts anything into the configuration of the tools that presets are
// read from. The result is rules, each for one host: a tool's configuration
// names registries, and opens no more than that.
func FuzzTools(f *testing.F) {
	for _, seed := range []string{
		"", "registry = https://npm.example/api/\n@us:registry=${MIRROR}\n", "registry=https://*/\n", "registry=https://*.com\n", "registry=https://me:hunter2@a.example:8443\n",
		"[global]\nindex-url = https://a.example/simple\nextra-index-url =\n    https://b.example/ http://c.example\n", "[global]\nindex-url=https://a%20b.example\n",
		"[source.crates-io]\nreplace-with = 'm'\n[source.m]\nregistry = 'sparse+https://c.example/index/'\n", "[registries.x]\nindex = 'ssh://git@[::1]:22/x'\n",
		"deb [arch=amd64] http://deb.example/debian stable main\n", "deb mirror+http://a,b/ x\n", "Types: deb\nURIs: http://one.example\n https://two.example\n", "deb http://GET,HEAD/ x\n",
		"GOPROXY=https://a.example,direct\nGOSUMDB=x.example+abc https://y.example/db\n", "GOPROXY=https://1.2.3.4|http://[fe80::1%25lo]\n", "registry=https://0x7f.1/\n",
	} {
		f.Add([]byte(seed))
	}
	root := f.TempDir()
	files := []string{
		"home/.npmrc", "project/.npmrc", "etc/npmrc", "home/.config/pip/pip.conf", "etc/pip.conf", "home/.cargo/config.toml", "project/.cargo/config.toml",
		"home/.config/go/env", "etc/apt/sources.list", "etc/apt/sources.list.d/a.sources",
	}
	for _, name := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	env := preset.Environment{Home: filepath.Join(root, "home"), Root: root, Project: filepath.Join(root, "project")}
	fixed := map[string][]string{} // what no configuration decides
	for _, one := range preset.List(env) {
		fixed[one.Name] = one.Rules
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, one := range preset.List(env) {
			for _, text := range one.Rules {
				// A registry by a disguised number is refused, with the reason.
				if _, err := egress.ParseRule(text); err != nil && fault.KindOf(err) != fault.Invalid {
					t.Errorf("%s: the rule %q: %v", one.Name, text, err)
				}
				if strings.Contains(text, "*") && strings.Join(one.Rules, " ") != strings.Join(fixed[one.Name], " ") {
					t.Errorf("%s: the rule %q opens more than one host", one.Name, text)
				}
			}
			if len(one.Rules) == 0 && one.Problem == "" {
				t.Errorf("%s: neither rules nor a problem", one.Name)
			}
		}
	})
}
