package tutorial

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var update = flag.Bool("update", false, "write the outputs to the pages")

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// pages are the tutorials, with the programs that they need.
var pages = []struct {
	name  string
	needs []string
	far   bool // it installs packages from the network
}{
	{name: "go", needs: []string{"go"}},
	{name: "node", needs: []string{"node", "npm", "curl"}, far: true},
	{name: "python", needs: []string{"/usr/bin/python3", "postgres", "initdb", "psql"}, far: true},
}

// TestTutorials types each tutorial in an empty directory.
func TestTutorials(t *testing.T) {
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			if p.far && os.Getenv("LITTERBOX_TEST_TUTORIALS") == "" {
				t.Skip("it installs packages: make test-tutorials, or LITTERBOX_TEST_TUTORIALS=1")
			}
			program.Need(t, p.needs...)
			if p.name == "python" && exec.Command("/usr/bin/python3", "-c", "import psycopg2").Run() != nil {
				t.Skip("Python's driver psycopg2 is not installed")
			}
			try(t, filepath.Join("..", "..", "docs", "tutorial", p.name+".md"))
		})
	}
}

// try types one tutorial. It stops at the first output that differs from the
// page, because later steps build on it.
func try(t *testing.T, path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parse(string(content))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	h := built.New(t)
	work := filepath.Join(h.Dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	r := reader{Host: h, dir: work}
	h.Env = append(h.Env, "PATH="+filepath.Dir(h.Program("litterbox"))+":"+os.Getenv("PATH"))
	r.hasBuiltGo()
	typed := 0
	for i := range p.parts {
		if f := p.parts[i].file; f != nil {
			h.Put(filepath.Join(work, f.path), f.content)
		}
		for n := range p.parts[i].session {
			s := &p.parts[i].session[n]
			came := r.typed(s.command)
			typed++
			if *update {
				if !matches(s.output, came) {
					s.output = came
				}
				continue
			}
			if !matches(s.output, came) {
				t.Fatalf("%s: %q prints\n%s\nand the page shows (run this test with -update)\n%s", path, s.command, came, s.output)
			}
		}
	}
	if typed == 0 {
		t.Fatalf("%s: nothing is typed", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reader types what the page says, in one shell.
type reader struct {
	*program.Host
	dir string // where the shell is
}

// hasBuiltGo lets the reader have the tester's build cache, which saves minutes of
// building the standard library outside and inside.
func (r *reader) hasBuiltGo() {
	r.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return // the page that needs Go is skipped without it
	}
	r.Env = append(r.Env, "GOCACHE="+strings.TrimSpace(string(cache)), "GOFLAGS=", "GOTOOLCHAIN=local")
	r.Put(filepath.Join(r.Home, ".config/litterbox/config.toml"), "[container]\nbuild-caches = [\"go-build\"]\n")
}

// typed runs a command and returns what a terminal would show.
func (r *reader) typed(command string) string {
	r.Helper()
	where := filepath.Join(r.Dir, "where")
	got := r.Command(r.dir, "sh", "-c", "exec 2>&1; "+command+"\npwd >'"+where+"'")
	dir, err := os.ReadFile(where)
	if err != nil {
		r.Fatalf("%q ended the shell: %v\n%s", command, err, got.Stdout)
	}
	r.dir = strings.TrimSpace(string(dir))
	return got.Stdout
}
