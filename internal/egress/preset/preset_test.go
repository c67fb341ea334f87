package preset_test

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/preset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// machine makes an environment of files (below one directory that is both / and
// the parent of home and project) and variables.
func machine(t *testing.T, files, env map[string]string) preset.Environment {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return preset.Environment{
		Getenv: func(name string) string { return strings.ReplaceAll(env[name], "ROOT", root) },
		Home:   filepath.Join(root, "home"), Root: root, Project: filepath.Join(root, "project"),
	}
}

const goStorage = "GET,HEAD https://storage.googleapis.com/proxy-golang-org-prod/"

func TestTools(t *testing.T) {
	type files = map[string]string
	for _, c := range []struct {
		name, preset string
		files, env   files
		want         []string
	}{
		{"defaults", "go", nil, nil, []string{goStorage, "https://proxy.golang.org", "https://sum.golang.org"}},
		{"variables", "go", nil, files{"GOPROXY": "https://user:pw@go.corp.example:8443/x|http://second.example,direct", "GOSUMDB": "off"},
			[]string{"GET,HEAD http://second.example", "https://go.corp.example:8443"}},
		{"go env -w", "go", files{"home/.config/go/env": "GOPROXY=https://file.example\nGOSUMDB=sum.corp.example+abc+def https://sum.corp.example/db\n"}, nil,
			[]string{"https://file.example", "https://sum.corp.example"}},
		{"go env elsewhere", "go", files{"x/env": "GOPROXY=https://file.example"}, files{"GOENV": "ROOT/x/env", "GOSUMDB": "sum.golang.google.cn"},
			[]string{"https://file.example", "https://sum.golang.google.cn"}},
		{"defaults", "npm", nil, nil, []string{"https://registry.npmjs.org"}},
		{"user and scopes", "npm", files{"home/.npmrc": "registry = https://npm.corp.example/api/\n@us:registry=${MIRROR}\n//npm.corp.example/:_authToken=secret\n; a comment\n", "etc/npmrc": "registry=https://global.example"},
			files{"MIRROR": "https://scope.example"}, []string{"https://npm.corp.example", "https://scope.example"}},
		{"project first", "npm", files{"home/.npmrc": "registry=https://user.example", "project/.npmrc": "registry=https://project.example"}, nil, []string{"https://project.example"}},
		{"variable first", "npm", files{"project/.npmrc": "registry=https://project.example"}, files{"npm_config_registry": "http://[2001:db8::1]:4873"}, []string{"http://[2001:db8::1]:4873"}},
		{"defaults", "pip", nil, nil, []string{"https://files.pythonhosted.org", "https://pypi.org"}},
		{"files", "pip", files{"etc/pip.conf": "[global]\nindex-url = https://global.example/simple\n", "home/.config/pip/pip.conf": "[global]\nindex-url = https://user.example/simple\nextra-index-url =\n    https://one.example/\n    https://two.example/\n[list]\nindex-url = https://not.example\n"}, nil,
			[]string{"https://one.example", "https://two.example", "https://user.example"}},
		{"variables", "pip", files{"etc/pip.conf": "[global]\nindex-url = https://global.example/simple\n"}, files{"PIP_INDEX_URL": "https://env.example/simple", "PIP_EXTRA_INDEX_URL": "https://a.example https://b.example"},
			[]string{"https://a.example", "https://b.example", "https://env.example"}},
		{"defaults", "cargo", nil, nil, []string{"https://index.crates.io", "https://static.crates.io"}},
		{"replaced", "cargo", files{"home/.cargo/config.toml": "[source.crates-io]\nreplace-with = 'mirror'\n[source.mirror]\nregistry = 'sparse+https://crates.corp.example/index/'\n[registries.inner]\nindex = 'ssh://git@git.corp.example/index'\n"}, nil,
			[]string{"git.corp.example:22", "https://crates.corp.example"}},
		{"a circle", "cargo", files{"home/.cargo/config.toml": "[source.crates-io]\nreplace-with = 'a'\n[source.a]\nreplace-with = 'crates-io'\n"}, nil, []string{"https://index.crates.io", "https://static.crates.io"}},
		{"repositories", "dnf", files{
			"etc/yum.repos.d/a.repo":   "[a]\nname=A\nbaseurl = https://a.example/$releasever/\n  http://b.example/x\n[off]\nbaseurl=https://off.example\nenabled=0\n# [c]\n[local]\nbaseurl=file:///srv\n",
			"etc/yum.repos.d/b.repo":   "[b]\nenabled=1\nmetalink=https://mirrors.example/metalink?repo=b\n",
			"etc/yum.repos.d/not.here": "[d]\nbaseurl=https://no.example\n",
		}, nil, []string{"GET,HEAD http://b.example", "https://a.example", "https://mirrors.example"}},
		{"servers", "pacman", files{
			"etc/pacman.conf":         "[core]\nInclude = /etc/pacman.d/mirrorlist\n[own]\nServer = https://own.example/$repo\n",
			"etc/pacman.d/mirrorlist": "#Server = https://no.example/\nServer = http://arch.example/$repo/os/$arch\n",
		}, nil, []string{"GET,HEAD http://arch.example", "https://own.example"}},
		{"repositories", "apk", files{
			"etc/apk/repositories":          "# https://no.example/\nhttps://alpine.example/v3.22/main\n@edge http://edge.example/edge/testing\n/media/cdrom/apks\n\n",
			"etc/apk/repositories.d/a.list": "v3 https://three.example/${APK_ARCH}/x main community\n",
			"etc/apk/repositories.d/b.off":  "https://off.example/\n",
		}, nil, []string{"GET,HEAD http://edge.example", "https://alpine.example", "https://three.example"}},
		{"both formats", "apt", files{
			"etc/apt/sources.list":              "# deb http://no.example/ x main\ndeb [arch=amd64 signed-by=/k] http://deb.example/debian stable main\ndeb-src https://src.example/ stable main\ndeb cdrom:[x]/ y main\ndeb file:/srv x main\n",
			"etc/apt/sources.list.d/a.sources":  "Types: deb\nURIs: http://one.example/debian\n https://two.example/debian\nSuites: stable\n\nEnabled: no\nTypes: deb\nURIs: http://off.example\nSuites: x\n\nTypes: deb\nURIs: mirror+http://mirror.example/list\n",
			"etc/apt/sources.list.d/b.disabled": "deb http://disabled.example x main\n",
		}, nil, []string{"GET,HEAD http://deb.example", "GET,HEAD http://mirror.example", "GET,HEAD http://one.example", "https://src.example", "https://two.example"}},
	} {
		got, err := preset.Expand(c.preset, machine(t, c.files, c.env))
		if err != nil {
			t.Errorf("%s, %s: %v", c.preset, c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", c.preset, c.name, diff)
		}
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		preset     string
		files, env map[string]string
		kind       fault.Kind
		want       string
	}{
		"unknown":          {"nosuch", nil, nil, fault.NotFound, "nosuch"},
		"no apt":           {"apt", nil, nil, fault.Unsupported, "no apt sources"},
		"no apk":           {"apk", nil, nil, fault.Unsupported, "no apk repositories"},
		"no dnf":           {"dnf", nil, nil, fault.Unsupported, "no dnf repositories"},
		"no pacman":        {"pacman", nil, nil, fault.Unsupported, "no pacman servers"},
		"no URL":           {"npm", nil, map[string]string{"npm_config_registry": "https://"}, fault.Unsupported, "is not a URL"},
		"a directory":      {"cargo", map[string]string{"home/.cargo/config.toml": "[source.crates-io]\nreplace-with='v'\n[source.v]\ndirectory='/v'\n"}, nil, fault.Unsupported, "directory of this machine"},
		"direct, no sums":  {"go", nil, map[string]string{"GOPROXY": "direct", "GOSUMDB": "off"}, fault.Unsupported, "one by one"},
		"a file:// mirror": {"go", nil, map[string]string{"GOPROXY": "file:///srv", "GOSUMDB": "off"}, fault.Unsupported, "directory of this machine"},
	} {
		_, err := preset.Expand(c.preset, machine(t, c.files, c.env))
		if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A registry in the human's own network works, and only that one address opens.
func TestPrivateRegistry(t *testing.T) {
	env := machine(t, nil, map[string]string{"npm_config_registry": "https://npm.corp.example:8443/", "PIP_INDEX_URL": "http://localhost:3141/simple"})
	env.Lookup = func(host string) []netip.Addr {
		if host == "npm.corp.example" {
			return []netip.Addr{netip.MustParseAddr("10.2.3.4"), netip.MustParseAddr("fd00::7"), netip.MustParseAddr("93.184.215.14")}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	}
	got, err := preset.Expand("npm", env)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"10.2.3.4:8443", "[fd00::7]:8443", "https://npm.corp.example:8443"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for _, one := range preset.List(env) {
		if one.Name == "pip" && !strings.Contains(one.Problem, "this machine itself") {
			t.Errorf("pip: %+v", one)
		}
	}
}

func TestList(t *testing.T) {
	env := machine(t, map[string]string{
		"etc/apt/sources.list": "deb http://deb.example/debian stable main\n", "etc/pacman.conf": "Server = https://arch.example/\n",
		"etc/yum.repos.d/a.repo": "[a]\nbaseurl=https://rpm.example/\n", "etc/apk/repositories": "https://alpine.example/main\n",
	}, map[string]string{"GOPROXY": "https://me:hunter2@go.example"})
	all := preset.List(env)
	names := map[string]bool{}
	for _, one := range all {
		if one.Meaning == "" || names[one.Name] || len(one.Rules) == 0 {
			t.Errorf("%+v", one)
		}
		names[one.Name] = true
		for _, text := range one.Rules {
			rule, err := egress.ParseRule(text)
			if err != nil || rule.String() != text {
				t.Errorf("%s: the rule %q became %q, %v", one.Name, text, rule, err)
			}
		}
		if strings.Contains(strings.Join(append(append(one.Rules, one.From...), one.Problem, one.Warning), " "), "hunter2") {
			t.Errorf("%s shows a password: %+v", one.Name, one)
		}
		if _, err := egress.ParseRule("preset:" + one.Name); err != nil {
			t.Error(err)
		}
	}
	if !slices.IsSorted(slices.Collect(func(yield func(string) bool) {
		for _, one := range all {
			if !yield(one.Name) {
				return
			}
		}
	})) {
		t.Errorf("not sorted: %v", slices.Sorted(maps.Keys(names)))
	}
	for _, name := range []string{"go", "npm", "pip", "cargo", "apk", "apt", "dnf", "pacman", "anthropic", "openai", "google", "github", "gitlab", "vscode", "cursor", "jetbrains", "zed"} {
		if !names[name] {
			t.Errorf("there is no preset %s", name)
		}
	}
}

func TestShared(t *testing.T) {
	for domain, want := range map[string]bool{"com": true, "co.uk": true, "github.io": true, "s3.amazonaws.com": true, "github.com": true, "example.com": false, "cdn.example.com": false} {
		if got := preset.Shared(domain); got != want {
			t.Errorf("%s is shared: %v, want %v", domain, got, want)
		}
	}
}

func TestWarning(t *testing.T) {
	for host, want := range map[string]bool{"github.com": true, "API.GitHub.com.": true, "*.amazonaws.com": true, "b.s3.amazonaws.com": true, "example.com": false, "notgithub.com": false} {
		if got := preset.Warning(host); (got != "") != want {
			t.Errorf("%s: %q", host, got)
		}
	}
}

// A preset in use reads its own tool alone: the registries of others are not
// looked up.
func TestExpandLooksUpItsOwnHosts(t *testing.T) {
	env := machine(t, map[string]string{"home/.cargo/config.toml": "[source.crates-io]\nreplace-with='m'\n[source.m]\nregistry='sparse+https://cargo.corp.example/index/'\n"},
		map[string]string{"npm_config_registry": "https://npm.corp.example/", "PIP_INDEX_URL": "https://pip.corp.example/simple", "GOPROXY": "https://go.corp.example", "GOSUMDB": "off"})
	for name, want := range map[string][]string{"npm": {"npm.corp.example"}, "cargo": {"cargo.corp.example"}, "claude": nil, "nosuch": nil} {
		var asked []string
		env.Lookup = func(host string) []netip.Addr {
			asked = append(asked, host)
			return nil
		}
		if _, err := preset.Expand(name, env); (err != nil) != (name == "nosuch") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("preset:%s looks up other hosts (-want +got):\n%s", name, diff)
		}
	}
}
