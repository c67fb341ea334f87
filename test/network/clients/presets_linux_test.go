package clients_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// manager is a package manager, with a registry of the world that has one
// package, "lib".
type manager struct {
	Name   string // of the preset too
	Needs  []string
	Secure bool // the registry speaks TLS
	// Registry serves the registry of base, a URL without a slash at its end.
	Registry func(t *testing.T, base string) http.Handler
	// Configure tells the tool on the human's machine about the registry.
	Configure func(h *program.Host, base string)
	// Project makes the project's own files, which tell the tool inside.
	Project func(h *program.Host, base string)
	// Install gets the package and writes its text to got.txt.
	Install string
}

// TestPresets sets up a project by container.setup-command with nothing but
// its package manager's preset allowed.
func TestPresets(t *testing.T) {
	for _, m := range managers() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			world.Need(t, m.Needs...)
			h := newHost(t)
			registry := outside.Host(m.Name + ".registry.example")
			base := "http://" + registry.Name
			if m.Secure {
				base = "https://" + registry.Name
			}
			webSite(t, registry, m.Registry(t, base))
			elsewhere := outside.Host(m.Name + ".elsewhere.example")
			webSite(t, elsewhere, protocol())
			m.Configure(h, base)
			m.Project(h, base)
			h.Put(h.Repo+"/.gitignore", "node_modules/\n")
			h.Put(h.Repo+"/install.sh", "set -e\n"+m.Install)
			h.Git("add", ".")
			h.Git("commit", "--quiet", "-m", "a project")

			h.Must("create", "closed")
			if got := h.Inside("closed", "sh", "install.sh"); got.Code == 0 {
				t.Errorf("without its preset it installed: %s", got.Stdout)
			}
			h.Put(h.Repo+"/.litterbox.toml", "[container]\nsetup-command = [\"sh\", \"install.sh\"]\n[network]\nallow = [\"preset:"+m.Name+"\"]\n")
			h.Must("trust")
			h.Must("create", "box")
			if got := h.Git("show", "box:got.txt"); got != "it works" {
				t.Errorf("it installed something that says %q\n%s", got, h.Must("network", "box"))
			}
			if got := h.Inside("box", "curl", "-sS", "-m", "20", "http://"+elsewhere.Name+"/"); got.Code == 0 {
				t.Errorf("the preset also opened another host: %s", got.Stdout)
			}
		})
	}
}

func managers() []manager {
	return []manager{
		{
			Name: "npm", Needs: []string{"npm", "node"}, Secure: true, Registry: npmRegistry,
			Configure: func(h *program.Host, base string) { h.Put(h.Home+"/.npmrc", "registry="+base+"/\n") },
			Project: func(h *program.Host, base string) {
				h.Put(h.Repo+"/.npmrc", "registry="+base+"/\nupdate-notifier=false\nfetch-retries=0\n")
				h.Put(h.Repo+"/package.json", `{"name": "project", "version": "1.0.0", "dependencies": {"lib": "^1.0.0"}}`)
			},
			Install: "npm install --cafile=$PWD/ca.pem --no-audit --no-fund\nnode -p 'require(\"lib\")' > got.txt",
		},
		{
			Name: "go", Needs: []string{"go"}, Secure: true, Registry: goRegistry,
			Configure: func(h *program.Host, base string) {
				h.Put(h.Home+"/.config/go/env", "GOPROXY="+base+"\nGOSUMDB=off\n")
			},
			Project: func(h *program.Host, base string) {
				h.Put(h.Repo+"/go.mod", "module project.example\n\ngo 1.20\n\nrequire lib.example/lib v1.0.0\n")
				h.Put(h.Repo+"/go.env", "GOPROXY="+base+"\nGOSUMDB=off\nGOFLAGS=-mod=mod\nGOTOOLCHAIN=local\n")
			},
			Install: "export SSL_CERT_FILE=$PWD/ca.pem GOENV=$PWD/go.env\ngo mod download lib.example/lib\ncat $(go list -m -f '{{.Dir}}' lib.example/lib)/lib.txt > got.txt",
		},
		{
			Name: "pip", Needs: []string{"python3", "pip3"}, Secure: true, Registry: pipRegistry,
			Configure: func(h *program.Host, base string) {
				h.Put(h.Home+"/.config/pip/pip.conf", "[global]\nindex-url = "+base+"/simple\n")
			},
			Project: func(h *program.Host, base string) {
				h.Put(h.Repo+"/pip.conf", "[global]\nindex-url = "+base+"/simple\ndisable-pip-version-check = true\nretries = 0\n")
			},
			Install: "PIP_CERT=$PWD/ca.pem PIP_CONFIG_FILE=$PWD/pip.conf /usr/bin/python3 -m pip install --quiet --target /tmp/lib lib==1.0\nPYTHONPATH=/tmp/lib /usr/bin/python3 -c 'import lib; print(lib.word)' > got.txt",
		},
		{
			Name: "apt", Needs: []string{"apt-get", "dpkg-deb"}, Registry: aptRegistry,
			// /etc is the world's own, and visible inside as the machine's always is.
			Configure: func(h *program.Host, base string) {
				path := "/etc/apt/sources.list.d/world.list"
				h.Put(path, "deb [trusted=yes] "+base+"/debian ./\n")
				h.Cleanup(func() { _ = os.Remove(path) })
			},
			Project: func(*program.Host, string) {},
			Install: strings.Join([]string{
				"mkdir -p /tmp/apt/state/lists/partial /tmp/apt/cache/archives/partial; touch /tmp/apt/status",
				"printf '%s\\n' 'Dir::State \"/tmp/apt/state\";' 'Dir::State::status \"/tmp/apt/status\";' 'Dir::Cache \"/tmp/apt/cache\";' 'Dir::Log \"/tmp/apt\";' 'APT::Sandbox::User \"\";' 'Acquire::Languages \"none\";' > /tmp/apt/conf",
				"export APT_CONFIG=/tmp/apt/conf",
				"apt-get -o Acquire::Retries=0 update", "cd /tmp", "apt-get -o Acquire::Retries=0 download lib", "cd -", "dpkg-deb -x /tmp/lib_*.deb /tmp/lib", "cat /tmp/lib/opt/lib > got.txt",
			}, "\n"),
		},
	}
}
