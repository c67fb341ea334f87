package projects_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// all reports whether every project is wanted, and not only the sample.
func all() bool { return os.Getenv("LITTERBOX_TEST_PROJECTS") == "all" }

// TestProjects prepares each project with what init writes, through the sandbox's
// own network, and runs its tests there: new, above many layers, above joined ones
// and, with all of them, from a golden. Each time they pass, and the files are
// those that the same commands make in the checkout.
func TestProjects(t *testing.T) {
	for _, p := range projects {
		t.Run(p.name, func(t *testing.T) {
			if os.Getenv("LITTERBOX_TEST_PROJECTS") == "" || !p.sample && !all() {
				t.Skip("make test-projects tries all, LITTERBOX_TEST_PROJECTS=sample three")
			}
			t.Parallel()
			program.Need(t, p.needs...)
			p.try(t)
		})
	}
}

// many is how many layers a sandbox stands on.
const many = 13

// spread moves a share of all files into the layer on top, makes a new directory
// that hides the one below it, and leaves a note in HOME.
const spread = `
find . -path ./.git -prune -o -type f -print | sort | awk -v n="$1" 'NR % 13 == n % 13' >/tmp/share
tar -cf /tmp/share.tar -T /tmp/share
tr '\n' '\0' </tmp/share | xargs -0 -r rm -f
tar -xpf /tmp/share.tar
dir=$(find . -path ./.git -prune -o -mindepth 1 -type d -print | sort | awk -v n="$1" 'NR == 1 + n')
test -z "$dir" || { cp -a "$dir" /tmp/dir; rm -rf "$dir"; cp -a /tmp/dir "$dir"; rm -rf /tmp/dir; }
echo "$1" >~/note$1`

// listing names every file with its mode and content. What a program writes there
// with a time in it is left out.
const listing = `find . \( -path ./.git -o -path ./.litterbox \) -prune -o -name __pycache__ -prune -o -name .nyc_output -prune -o -name coverage -prune -o ! -name '*.log' \( -type d -printf '%p d\n' -o -printf '%p %y %m %l\n' \) | sort
find . \( -path ./.git -o -path ./.litterbox \) -prune -o -name __pycache__ -prune -o -name .nyc_output -prune -o -name coverage -prune -o ! -name '*.log' -type f -print0 | sort -z | xargs -0 sha1sum`

func (p project) try(t *testing.T) {
	h := built.New(t)
	h.Limit = 20 * time.Minute // nyc looks at every file that node opens
	h.Env = append(h.Env, "PATH="+p.path(t))
	p.checkout(h)
	h.Must("init", "--yes")
	if text := read(t, filepath.Join(h.Repo, ".litterbox.toml")); !strings.Contains(text, p.setup) || p.setup == "" && strings.Contains(text, "setup-command") {
		t.Errorf("init does not set %q up:\n%s", p.setup, text)
	}
	h.Git("add", "-A")
	h.Git("commit", "--quiet", "-m", "Configure litterbox")
	h.Must("trust")

	h.Must("create", "box")
	inside := func(box, when, script string) string {
		t.Helper()
		got := h.Inside(box, "sh", "-ec", script)
		if got.Code != 0 {
			t.Fatalf("%s, %q exited %d:\n%s%s", when, script, got.Code, got.Stdout, got.Stderr)
		}
		return got.Stdout
	}
	inside("box", "in a new sandbox", p.tests)
	outside := p.outside(h)
	same := func(box, when string) {
		t.Helper()
		if got := inside(box, when, listing); got != outside {
			t.Errorf("%s, the files are not those outside:\n%s", when, difference(outside, got))
		}
	}
	same("box", "in a new sandbox")

	h.Stack("box", many, spread)
	if on := h.Layers("box"); on < many {
		t.Fatalf("it stands on %d layers", on)
	}
	same("box", "above layers")
	inside("box", "above layers", p.tests)
	inside("box", "above layers", p.made())
	same("box", "made again above layers")

	h.Stack("box", frozen.MaxStack+1-many, spread)
	if on := h.Layers("box"); on > 2 {
		t.Fatalf("it stands on %d layers, which were not joined", on)
	}
	same("box", "above joined layers")
	inside("box", "above joined layers", p.tests)
	inside("box", "above joined layers", p.made())
	same("box", "made again above joined layers")

	if all() {
		h.Must("build")
		h.Must("create", "fast")
		inside("fast", "from a golden", p.tests)
		same("fast", "from a golden")
	}
}

// outside does the same in the checkout, and lists the result.
func (p project) outside(h *program.Host) string {
	h.Helper()
	var got program.Result
	for _, script := range []string{p.made(), listing} {
		if got = h.Command(h.Repo, "sh", "-ec", "umask 022\n"+script); got.Code != 0 {
			h.Fatalf("outside, %q exited %d:\n%s%s", script, got.Code, got.Stdout, got.Stderr)
		}
	}
	return got.Stdout
}

// path returns a PATH with what the project needs and the system's own programs,
// so that both sides have the same: programs of another user's home are not
// visible inside.
func (p project) path(t *testing.T) string {
	t.Helper()
	dirs := []string{"/usr/bin", "/bin"}
	for _, name := range p.needs {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append([]string{filepath.Dir(found)}, dirs...)
	}
	return strings.Join(dirs, ":")
}

// made returns all that a contributor types.
func (p project) made() string {
	if p.setup == "" {
		return p.tests
	}
	return p.setup + "\n" + p.tests
}

// checkout fetches the project and commits it as the content of the repository.
func (p project) checkout(h *program.Host) {
	h.Helper()
	kind, name, _ := strings.Cut(p.source, ":")
	dir := filepath.Join(h.Dir, "fetched")
	fetch := map[string]string{
		"npm":    `mkdir "$1" && cd "$1" && npm pack --silent "$2" && tar -xzf ./*.tgz && mv package ../package && rm -rf "$1" && mv ../package "$1"`,
		"go":     `mkdir "$1.module" && cd "$1.module" && echo 'module fetched' >go.mod && cp -r "$(go mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')" "$1"`,
		"debian": `../debian-source "$1" "$2" && rm -rf "$1/.pc" "$1/debian"`,
	}[kind]
	cmd := exec.Command("sh", "-ec", fetch, "sh", dir, name) // with the tester's own caches
	if output, err := cmd.CombinedOutput(); err != nil {
		why := "cannot fetch " + p.source + ": " + err.Error() + "\n" + string(output)
		demanded := map[string]string{"npm": "npm", "go": "go", "debian": "debian-source"}[kind]
		if all() || slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), demanded) {
			h.Fatal(why)
		}
		h.Skip(why)
	}
	got := h.Command(h.Repo, "sh", "-ec", `umask 022; rm -r README src; cp -r "$1/." .; chmod -R u+w,go-w,a+rX .; `+p.prepare+"\n"+`git add -A; git commit --quiet -m "$2"`, "sh", dir, p.source)
	if got.Code != 0 {
		h.Fatalf("cannot make a repository of %s: %s%s", p.source, got.Stdout, got.Stderr)
	}
}

// difference returns the first lines of each text that the other lacks.
func difference(outside, inside string) string {
	var all []string
	for _, one := range []struct{ mark, of, lacks string }{{"- ", outside, inside}, {"+ ", inside, outside}} {
		known := map[string]bool{}
		for line := range strings.Lines(one.lacks) {
			known[line] = true
		}
		for line := range strings.Lines(one.of) {
			if !known[line] && len(all) < 40 {
				all = append(all, one.mark+line)
			}
		}
	}
	return strings.Join(all, "")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
