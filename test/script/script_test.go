// Package script drives the true litterbox program through the scripts in
// testdata, each of which says on top what it guards. They hold for root and
// for an ordinary user.
//
// What the scripts need beyond testscript's own commands is in
// commands_test.go. Start reading at testdata/create.txtar.
package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/litterbox-sandbox/litterbox/internal/redteam/probe"
)

// program is the directory with the litterbox that the scripts run; TestMain
// sets it before any test.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// testMain builds the program once. LITTERBOX_TEST_PROGRAM names a directory
// with one that is already built, an installed one for example.
func testMain(m *testing.M) int {
	if program = os.Getenv("LITTERBOX_TEST_PROGRAM"); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "litterbox-script-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Another uid inside must be able to execute it.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "litterbox"), "../../cmd/litterbox")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot build litterbox:", err)
		return 1
	}
	program = dir
	return m.Run()
}

func TestScripts(t *testing.T) { run(t, testscript.Params{Dir: "testdata", Setup: setup}) }

// If no overlay can be mounted, everything works the same, on copies. These
// are the scripts about files and what becomes of them.
func TestScriptsOnCopies(t *testing.T) {
	var files []string
	for _, name := range []string{
		"bring", "commits", "copy", "create", "delta", "diff", "exec", "files", "inside", "merge", "milestone", "restart", "snapshots", "submodules",
	} {
		files = append(files, filepath.Join("testdata", name+".txtar"))
	}
	run(t, testscript.Params{Files: files, Setup: func(env *testscript.Env) error {
		env.Setenv("LITTERBOX_WORKSPACE", "copy")
		return setup(env)
	}})
}

func run(t *testing.T, p testscript.Params) {
	missing := whyNoSandbox(t)
	p.RequireExplicitExec, p.RequireUniqueNames, p.Cmds = true, true, commands()
	// Its removal fails the test if a sandbox left something that the user
	// cannot remove.
	p.WorkdirRoot = t.TempDir()
	p.Condition = func(name string) (bool, error) {
		switch name {
		case "sandbox":
			return missing == "", nil
		case "root":
			return os.Geteuid() == 0, nil
		case "landlock":
			return keepsLandlock(), nil
		case "disk-io":
			return keepsDiskIO(), nil
		case "32-bit":
			return has32Bit(), nil
		case "long":
			return os.Getenv("LITTERBOX_TEST_LONG") != "", nil
		}
		return false, fmt.Errorf("unknown condition %q", name)
	}
	testscript.Run(t, p)
}

// whyNoSandbox says what this machine lacks for a sandbox; empty if nothing.
// Scripts that need one are then skipped, unless LITTERBOX_TEST_REQUIRE names
// the namespace driver: there a skip would be an empty success.
func whyNoSandbox(t *testing.T) string {
	doctor := exec.Command(filepath.Join(program, "litterbox"), "doctor")
	doctor.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	output, err := doctor.CombinedOutput()
	if err == nil {
		return ""
	}
	if strings.Contains(os.Getenv("LITTERBOX_TEST_REQUIRE"), "namespace") {
		t.Fatalf("LITTERBOX_TEST_REQUIRE demands the namespace driver, and this machine lacks it:\n%s", output)
	}
	t.Logf("no sandbox can be made here; scripts that need one are skipped:\n%s", output)
	return string(output)
}

// has32Bit reports whether the kernel has an entry for 32-bit programs.
func has32Bit() bool {
	cmd := exec.Command(filepath.Join(program, "litterbox"), "foreign", "int80")
	cmd.Args[0] = probe.Name
	var stderr strings.Builder
	cmd.Stderr = &stderr
	_ = cmd.Run() // its end is the answer
	return !probe.NoEntry(cmd.ProcessState.ExitCode(), stderr.String())
}

// keepsDiskIO asks doctor whether anything here keeps that limit.
func keepsDiskIO() bool {
	output, err := exec.Command(filepath.Join(program, "litterbox"), "doctor").Output()
	return err == nil && !strings.Contains(string(output), "disk-io: none")
}

// keepsLandlock reports whether this machine can have the degraded tier.
func keepsLandlock() bool {
	doctor := exec.Command(filepath.Join(program, "litterbox"), "doctor")
	doctor.Env = append(os.Environ(), "LITTERBOX_TIER=degraded")
	output, _ := doctor.Output() // it ends with 8 in this tier
	return strings.Contains(string(output), "isolation: degraded")
}

// setup gives each script a home of its own and a git that knows its user.
func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	const config = "[user]\n\tname = Ada Lovelace\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	env.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("LC_ALL", "C.UTF-8")
	env.Setenv("PATH", program+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("TERM", "xterm")
	env.Setenv("WALKERS", os.Getenv("LITTERBOX_TEST_WALKERS")) // where npm has put tools
	env.Setenv("UNIQUE", strconv.Itoa(os.Getpid()))            // on the machine, for what a script looks for outside its own places
	env.Defer(func() { deleteAll(env) })
	return nil
}

// deleteAll ends everything that a script left running.
func deleteAll(env *testscript.Env) {
	litterbox := func(args ...string) ([]byte, error) {
		cmd := exec.Command(filepath.Join(program, "litterbox"), args...)
		cmd.Env, cmd.Dir = env.Vars, env.WorkDir
		return cmd.Output()
	}
	if _, err := litterbox("env", "delete", "--all", "--stop"); err != nil {
		env.T().Log("cannot delete the environments after the script:", err)
	}
	output, err := litterbox("list", "--all", "--json")
	if err != nil {
		return // a script about a state that cannot be listed
	}
	var sandboxes []struct{ Name, Repository string }
	if err := json.Unmarshal(output, &sandboxes); err != nil {
		env.T().Log("cannot read the list of sandboxes:", err)
		return
	}
	for _, s := range sandboxes {
		if _, err := litterbox("-C", s.Repository, "delete", "--force", "--purge", s.Name); err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w: %s", err, exit.Stderr)
			}
			env.T().Fatal("cannot delete ", s.Name, " after the script: ", err)
		}
	}
	// Only litterbox can remove directories that a sandbox has closed.
	if _, err := litterbox("trash", "empty", "--all", "--yes"); err != nil {
		env.T().Log("cannot empty the trash after the script:", err)
	}
}
