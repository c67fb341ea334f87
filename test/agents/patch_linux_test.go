package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
)

// Codex gives apply_patch to models that it knows. With --exclusive the patch is
// refused; with the flag that bypasses its sandbox it is not, unless the
// machine's requirements forbid that flag, as the pages say.
func TestRealClientsPatchOfCodex(t *testing.T) {
	dir := installed(t)
	codex := clients[slices.IndexFunc(clients, func(c client) bool { return c.name == "codex" })]
	const bypass = "--dangerously-bypass-approvals-and-sandbox"
	patch := call{"apply_patch", object{"*": "*** Begin Patch\n*** Add File: own-patch.txt\n+x\n*** End Patch\n"}}
	for _, c := range []struct {
		name         string
		flags        []string
		requirements bool
		wrote        bool
		says         string
	}{
		{name: "exclusive", says: "writing is blocked by read-only sandbox"},
		{name: "bypass", flags: []string{bypass}, wrote: true, says: "own-patch.txt"},
		{name: "required", flags: []string{bypass}, requirements: true, says: "requirements do not allow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := built.New(t)
			if c.requirements {
				etc(t, h.Dir, "codex/requirements.toml", agents.CodexRequirements)
			}
			m := newModel(t, patch)
			env := codex.prepare(h, m)
			// Codex takes no patches from a model that it does not know.
			config := filepath.Join(h.Home, ".codex", "config.toml")
			content, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			h.Put(config, strings.Replace(string(content), `model = "stub"`, `model = "gpt-5.5"`, 1))
			h.Must("agent", "install", "codex", "--exclusive")
			out := codex.run(t, h, dir, env, c.flags...)
			_, err = os.Stat(filepath.Join(h.Repo, "own-patch.txt"))
			if wrote := err == nil; wrote != c.wrote || !strings.Contains(out+strings.Join(m.results, "\n"), c.says) {
				t.Errorf("wrote %t, want %t and %q\noffered: %q\nresults: %q\n%s", wrote, c.wrote, c.says, m.offered, m.results, out)
			}
		})
	}
}

// etc gives this test, and what it starts, a copy of /etc with one more file.
func etc(t *testing.T, dir, name, content string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root gives a test an /etc of its own here")
	}
	own := filepath.Join(dir, "etc")
	if out, err := exec.Command("cp", "-a", "/etc", own).CombinedOutput(); err != nil {
		t.Fatalf("cannot copy /etc: %v: %s", err, out)
	}
	file := filepath.Join(own, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	// A thread shares its working directory and root with the others until then.
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		t.Skip("no mounts of its own can be made: ", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(own, "/etc", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}
