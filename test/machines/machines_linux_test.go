// Package machines runs the true program on machines that lack something. They
// are simulated, so that every machine can run the tests: by limits of a user
// namespace, by the umask, by process limits. Each case either works in the
// full tier, or is refused with the exact command that mends the machine and
// works in the degraded tier when that was asked for.
//
// docs/reference/platforms.md is written from the same table; -update writes it.
package machines_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var (
	built  *program.Built
	update = flag.Bool("update", false, "write docs/reference/platforms.md")
)

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }, "test/machines/without"))
}

// machine is one that lacks something.
type machine struct {
	Name string
	// Enter is a command that runs `sh -c SCRIPT` there, given the script as
	// its last argument. The program "without" is this test's own.
	Enter []string
	Full  bool   // the full tier can be had
	Mend  string // what the refusal says otherwise
}

func machines() []machine {
	const noNamespaces = `echo 0 >/proc/sys/user/max_user_namespaces && exec sh -c "$0"`
	return []machine{
		{Name: "nothing is missing", Enter: []string{"sh", "-c"}, Full: true},
		{Name: "`umask 077`", Enter: []string{"sh", "-c", `umask 077 && exec sh -c "$0"`}, Full: true},
		{Name: "256 open files for each process", Enter: []string{"sh", "-c", `ulimit -n 256 && exec sh -c "$0"`}, Full: true},
		{
			Name:  "user namespaces are switched off (`user.max_user_namespaces = 0`)",
			Enter: []string{"unshare", "--user", "--map-root-user", "sh", "-c", noNamespaces},
			Mend:  "sudo sysctl -w user.max_user_namespaces=15000",
		},
		{
			Name:  "a filter refuses the system calls that make user namespaces, as those of containers and services do",
			Enter: []string{"without", "userns", "sh", "-c"},
			Mend:  "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined",
		},
		{Name: "the kernel has no Landlock", Enter: []string{"without", "landlock", "sh", "-c"}, Full: true},
		{Name: "a user id without a name", Enter: []string{"unshare", "--user", "--map-user=4242", "--map-group=4242", "sh", "-c"}, Full: true},
		{Name: "a user id over 2^31", Enter: []string{"unshare", "--user", "--map-user=3000000000", "--map-group=3000000000", "sh", "-c"}, Full: true},
	}
}

func TestMachines(t *testing.T) {
	for _, m := range machines() {
		t.Run(m.Name, func(t *testing.T) {
			h := built.New(t)
			enter := m.Enter[0]
			if enter == "without" {
				enter = h.Program(enter)
			} else {
				program.Need(t, enter)
			}
			run := func(script string) program.Result {
				return h.Command(h.Repo, enter, append(m.Enter[1:len(m.Enter):len(m.Enter)], script)...)
			}
			litterbox := h.Program("litterbox") + " "
			got := run(litterbox + "create box")
			if m.Full {
				if got.Code != 0 {
					t.Fatal(got.Stderr)
				}
			} else {
				if got.Code == 0 || !strings.Contains(got.Stderr, m.Mend) || !strings.Contains(got.Stderr, "--allow-degraded") {
					t.Fatalf("exit %d, want a refusal that names the tier and %q:\n%s", got.Code, m.Mend, got.Stderr)
				}
				if got := run(litterbox + "doctor"); !strings.Contains(got.Stdout, m.Mend) || !strings.Contains(got.Stdout, "isolation: degraded") {
					t.Errorf("doctor says\n%s", got.Stdout)
				}
				if got := run(litterbox + "create box --allow-degraded"); got.Code != 0 || !strings.Contains(got.Stderr, "not isolated: ") {
					t.Fatalf("exit %d:\n%s", got.Code, got.Stderr)
				}
			}
			got = run(litterbox + "exec box -- sh -c 'echo work >made && git status --short' && git show box:made && " + litterbox + "list && " + litterbox + "delete --force box")
			tier := map[bool]string{true: "full", false: "degraded"}[m.Full]
			if got.Code != 0 || !strings.Contains(got.Stdout, "work\n") || !strings.Contains(got.Stdout, " "+tier+" ") {
				t.Errorf("exit %d, want work in the %s tier:\n%s%s", got.Code, tier, got.Stdout, got.Stderr)
			}
		})
	}
}

func TestPlatformsPage(t *testing.T) {
	const path = "../../docs/reference/platforms.md"
	var page strings.Builder
	page.WriteString("# Machines\n\nWhat litterbox does on machines that lack something. The rows are those of `test/machines`, which runs the true program on each.\n\n")
	page.WriteString("| machine | isolation | with `--allow-degraded` | what mends it |\n|---|---|---|---|\n")
	for _, m := range machines() {
		if m.Full {
			fmt.Fprintf(&page, "| %s | full | full | |\n", m.Name)
		} else {
			fmt.Fprintf(&page, "| %s | refused | degraded | `%s` |\n", m.Name, m.Mend)
		}
	}
	page.WriteString("\nWhat the degraded tier does not isolate stands in [docs/security.md](../security.md); `litterbox doctor` tries what a machine has.\n")
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), page.String()); diff != "" {
		t.Errorf("the page is out of date (go test ./test/machines -run Page -update):\n%s", diff)
	}
}
