// Package containers runs the true program inside containers of Docker, Podman
// and gVisor, started in the ways that people start them. Each either works in
// the full tier, or is refused with the flags that fix it and works in the
// degraded tier on request.
//
// It needs root, the engines and a mirror of Debian, so it runs if
// LITTERBOX_TEST_CONTAINERS is set (`make test-containers`), and then fails if
// an engine is missing. docs/reference/containers.md is written from the same
// table: -update writes it, and every run compares it.
package containers_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var (
	built  *program.Built
	asked  = os.Getenv("LITTERBOX_TEST_CONTAINERS")
	update = flag.Bool("update", false, "write docs/reference/containers.md")
)

func TestMain(m *testing.M) {
	if asked == "" {
		os.Exit(m.Run()) // the page alone, which needs no program
	}
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// start is a way to start a container.
type start struct {
	Engine string
	Flags  []string
	Full   bool   // the full tier is possible
	None   bool   // not even the degraded one
	Mend   string // what the refusal says if not
}

const (
	dockerEngine   = "docker"
	podmanEngine   = "podman"
	rootlessEngine = "podman, rootless"
)

func starts() []start {
	const (
		seccomp  = "--security-opt seccomp=unconfined"
		apparmor = "--security-opt apparmor=unconfined"
		paths    = "--security-opt systempaths=unconfined"
		unmask   = "--security-opt unmask=ALL"
	)
	user := []string{"--user", "1000"}
	opened := strings.Fields(seccomp + " " + apparmor + " " + paths)
	unmasked := strings.Fields(seccomp + " " + apparmor + " " + unmask)
	privileged := []string{"--privileged"}
	dockerMend := "docker run " + seccomp + " " + apparmor + " " + paths
	podmanMend := "podman run " + seccomp + " " + apparmor + " " + unmask
	return []start{
		{Engine: dockerEngine, Mend: dockerMend},
		{Engine: dockerEngine, Flags: user, Mend: dockerMend},
		{Engine: dockerEngine, Flags: opened, Full: true},
		{Engine: dockerEngine, Flags: slices.Concat(user, opened), Full: true},
		{Engine: dockerEngine, Flags: privileged, Full: true},
		{Engine: dockerEngine, Flags: slices.Concat(user, privileged), Full: true},
		{Engine: dockerEngine, Flags: []string{"--runtime", "runsc"}, None: true,
			Mend: strings.Replace(dockerMend, "run", "run --runtime runc", 1)},
		{Engine: podmanEngine, Mend: podmanMend},
		{Engine: podmanEngine, Flags: user, Mend: podmanMend},
		{Engine: podmanEngine, Flags: unmasked, Full: true},
		{Engine: podmanEngine, Flags: slices.Concat(user, unmasked), Full: true},
		{Engine: podmanEngine, Flags: strings.Fields(seccomp), Mend: podmanMend},
		{Engine: podmanEngine, Flags: strings.Fields(unmask), Mend: podmanMend},
		{Engine: podmanEngine, Flags: privileged, Full: true},
		{Engine: rootlessEngine, Mend: podmanMend},
		{Engine: rootlessEngine, Flags: unmasked, Full: true},
		{Engine: rootlessEngine, Flags: slices.Concat(user, unmasked), Full: true},
		{Engine: rootlessEngine, Flags: privileged, Full: true},
	}
}

func (s start) name() string { return strings.Join(append([]string{s.Engine}, s.Flags...), " ") }

func (s start) tier() string {
	switch {
	case s.Full:
		return "full"
	case s.None:
		return "none"
	}
	return "degraded"
}

func TestContainers(t *testing.T) {
	if asked == "" {
		t.Skip("LITTERBOX_TEST_CONTAINERS is not set: make test-containers needs Docker, Podman and root")
	}
	engines := newEngines(t)
	for _, s := range starts() {
		for _, volume := range []bool{false, true} {
			name := s.name()
			if volume {
				if !s.Full {
					continue // it mounts nothing: the place of the state makes no difference
				}
				name += ", state on a volume"
			}
			t.Run(name, func(t *testing.T) { work(t, engines.run(t, s, volume), s, volume) })
		}
	}
}

// work makes a sandbox, commits in it, looks at it, merges it and deletes it.
func work(t *testing.T, c *container, s start, volume bool) {
	tier := s.tier()
	doctor := c.sh("mkdir -p $HOME && cd && litterbox doctor")
	if s.Full != (doctor.Code == 0) || !strings.Contains(doctor.Stdout, "\nisolation: "+tier) || !strings.Contains(doctor.Stdout, s.Mend) {
		t.Errorf("doctor exited %d, want the %s tier and %q:\n%s%s", doctor.Code, tier, s.Mend, doctor.Stdout, doctor.Stderr)
	}
	if s.Full && !volume && !strings.Contains(doctor.Stdout, " run --volume ") {
		t.Errorf("doctor names no volume:\n%s", doctor.Stdout)
	}
	c.must(`git init --quiet --initial-branch=main $HOME/project && cd $HOME/project &&
		git config user.name Test && git config user.email test@example.com &&
		echo hello >README && git add . && git commit --quiet -m first`)

	create := "litterbox create box"
	if !s.Full {
		got := c.project(create)
		if got.Code == 0 || !strings.Contains(got.Stderr, s.Mend+" …") || s.None == strings.Contains(got.Stderr, "--allow-degraded") {
			t.Errorf("exit %d, want a refusal that names the tier and %q:\n%s", got.Code, s.Mend, got.Stderr)
		}
		create += " --allow-degraded"
	}
	got := c.project(create)
	if s.None {
		if got.Code == 0 || !strings.Contains(got.Stderr, "not even in the degraded tier") {
			t.Errorf("%s exited %d, want a refusal:\n%s", create, got.Code, got.Stderr)
		}
		return
	}
	if got.Code != 0 {
		t.Fatalf("%s exited %d:\n%s", create, got.Code, got.Stderr)
	}
	if !s.Full && !strings.Contains(got.Stderr, "not isolated: ") {
		t.Errorf("nothing says what is not isolated:\n%s", got.Stderr)
	}
	if copied := strings.Contains(got.Stderr, "its files are a copy"); s.Full && copied == volume {
		t.Errorf("files are copied: %v, with the state on a volume: %v:\n%s", copied, volume, got.Stderr)
	}
	for _, step := range []struct{ command, want string }{
		{"litterbox exec box -- sh -c 'echo work >made && git status --short && exit 3' ; echo exit $?", "?? made\nexit 3\n"},
		{"git show box:made", "work\n"},
		{"litterbox exec box -- sh -c 'cat made && echo more >>made'", "work\n"},
		{"litterbox list", " " + tier + " "},
		{"litterbox diff box", "+work\n+more\n"},
		{"litterbox stop box && litterbox exec box -- cat made", "work\nmore\n"}, // a new place on the same files
		{"litterbox merge box >/dev/null && cat made", "work\nmore\n"},
		{create + " >/dev/null 2>&1 && litterbox exec box -- sh -c 'echo other >made' && litterbox delete --force box && cat made", "work\nmore\n"},
		{"litterbox list --all --json", "[]\n"},
	} {
		if got := c.project(step.command); got.Code != 0 || !strings.Contains(got.Stdout, step.want) {
			t.Errorf("%s exited %d, want %q:\n%s%s", step.command, got.Code, step.want, got.Stdout, got.Stderr)
		}
	}
	if got := c.sh("litterbox doctor"); strings.Contains(got.Stdout, "left behind") {
		t.Errorf("something was left behind:\n%s", got.Stdout)
	}
}

func TestContainersPage(t *testing.T) {
	const path = "../../docs/reference/containers.md"
	var page strings.Builder
	page.WriteString("# Containers\n\nWhat litterbox does inside a container, by how the container was started. The rows are those of `test/containers`, which `make test-containers` runs with the real program and engines.\n\n")
	page.WriteString("| engine | flags | isolation | with `--allow-degraded` | how to fix it |\n|---|---|---|---|---|\n")
	for _, s := range starts() {
		flags := "none"
		if len(s.Flags) > 0 {
			flags = "`" + strings.Join(s.Flags, " ") + "`"
		}
		switch {
		case s.Full:
			fmt.Fprintf(&page, "| %s | %s | full | full | |\n", s.Engine, flags)
		case s.None:
			fmt.Fprintf(&page, "| %s | %s | refused | refused | `%s` |\n", s.Engine, flags, s.Mend)
		default:
			fmt.Fprintf(&page, "| %s | %s | refused | degraded | `%s` |\n", s.Engine, flags, s.Mend)
		}
	}
	page.WriteString(closing)
	program.Page(t, path, page.String(), *update)
}

const closing = `
A container's own root is an overlay, and overlays cannot be stacked there: with the state on it, each sandbox gets a copy of the project's files. With the state on a volume (` + "`--volume /a/directory/of/the/host:$HOME/.local/state/litterbox`" + `) sandboxes share them, as outside of a container. Both isolate equally well, and each row with full isolation was tested with both.

` + "`runsc`" + ` is gVisor: its kernel in user space has neither mount_setattr nor Landlock, so no sandbox of either tier can be made on it.

[docs/security.md](../security.md) says what the degraded tier does not isolate; ` + "`litterbox doctor`" + ` tests what a container offers.
`
