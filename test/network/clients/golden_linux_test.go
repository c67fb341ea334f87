package clients_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// counted counts the requests that it passes on.
type counted struct {
	requests atomic.Int64
	handler  http.Handler
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	c.handler.ServeHTTP(w, r)
}

// A golden of an npm project is built once from its lock file: sandboxes have
// node_modules at their first command and ask the registry for nothing.
func TestGoldenOfNpm(t *testing.T) {
	t.Parallel()
	npm := managers()[0]
	world.Need(t, npm.Needs...)
	h := newHost(t)
	site := outside.Host("golden.registry.example")
	base := "https://" + site.Name
	registry := &counted{handler: npmRegistry(t, base)}
	webSite(t, site, registry)
	npm.Configure(h, base)
	npm.Project(h, base)
	lock := `{"name": "project", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {` +
		`"": {"name": "project", "version": "1.0.0", "dependencies": {"lib": "^1.0.0"}}, "node_modules/lib": {"version": "1.0.0", "resolved": "` + base + `/lib/-/lib-1.0.0.tgz"}}}`
	h.Put(h.Repo+"/package-lock.json", lock)
	h.Put(h.Repo+"/.gitignore", "node_modules/\n")
	h.Put(h.Repo+"/test.js", `require("assert").equal(require("lib"), "it works")`)
	configuration := "[container]\nsetup-command = [\"npm\", \"ci\", \"--cafile=ca.pem\", \"--no-audit\", \"--no-fund\"]\n"
	h.Put(h.Repo+"/.litterbox.toml", configuration)
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "a project")
	h.Must("trust")

	// Nothing is opened by itself, and the error names the rule.
	if got := h.Litterbox("build"); got.Code == 0 || !strings.Contains(got.Stderr, site.Name) {
		t.Fatalf("without its preset it was built: %+v", got)
	}
	h.Put(h.Repo+"/.litterbox.toml", configuration+"[network]\nallow = [\"preset:npm\"]\n")
	h.Git("commit", "--quiet", "-am", "the preset")
	h.Must("trust")
	h.Must("build")
	asked := registry.requests.Load()
	if asked == 0 {
		t.Fatal("the build asked the registry for nothing: the test shows nothing")
	}
	for _, name := range []string{"one", "two"} {
		if got := h.Litterbox("create", name); got.Code != 0 || strings.Contains(got.Stderr, "stale") {
			t.Fatalf("%+v", got)
		}
		if got := h.Inside(name, "sh", "-c", "npm test >out 2>&1 || node test.js && npm ls --offline lib | grep lib@1.0.0 && rm -f out && git status --porcelain"); got.Code != 0 || !strings.Contains(got.Stdout, "lib@1.0.0") || strings.Contains(got.Stdout, "??") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if now := registry.requests.Load(); now != asked {
		t.Errorf("two sandboxes asked the registry %d times", now-asked)
	}
	// Each removes only its own.
	h.Must("exec", "one", "--no-commit", "--", "rm", "-r", "node_modules/lib")
	if got := h.Inside("two", "node", "test.js"); got.Code != 0 {
		t.Errorf("it is gone in the other too: %s", got.Stderr)
	}
	// Another lock file makes the golden stale.
	h.Put(h.Repo+"/package-lock.json", lock+"\n")
	h.Git("commit", "--quiet", "-am", "another lock file")
	if got := h.Litterbox("create", "three"); got.Code != 0 || !strings.Contains(got.Stderr, "stale (changed: package-lock.json): litterbox build") {
		t.Errorf("%+v", got)
	}
}
