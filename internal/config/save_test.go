package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func TestSaveRule(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), config.RepositoryFile)
	for _, step := range []struct{ list, rule, want string }{
		{"deny", "Ads.Example.com", "[network]\ndeny = [\"ads.example.com\"]\n"},
		{"allow", "github.com:22", "[network]\ndeny = [\"ads.example.com\"]\nallow = [\"github.com:22\"]\n"},
		{"allow", " preset:npm ", "[network]\ndeny = [\"ads.example.com\"]\nallow = [\"github.com:22\", \"preset:npm\"]\n"},
		{"allow", "GITHUB.com:22", "[network]\ndeny = [\"ads.example.com\"]\nallow = [\"github.com:22\", \"preset:npm\"]\n"},
	} {
		if err := config.SaveRule(t.Context(), file, step.list, step.rule); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, content(t, file)); diff != "" {
			t.Errorf("after %s %s (- want, + got):\n%s", step.list, step.rule, diff)
		}
	}
	alone(t, file)
}

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// alone checks that there is no temporary file beside the written one.
func alone(t *testing.T, file string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside %s: %v, %v", file, entries, err)
	}
}

func TestSaveRuleKeepsTheMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o600, 0o644, 0o664, 0o755} {
		file := filepath.Join(t.TempDir(), config.RepositoryFile)
		write(t, file, "# mine\n")
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if err := config.SaveRule(t.Context(), file, "allow", "a.example"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode() != mode {
			t.Errorf("%v became %v, %v", mode, info.Mode(), err)
		}
	}
}

// As sudo litterbox in a user's repository.
func TestSaveRuleKeepsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	file := filepath.Join(t.TempDir(), config.RepositoryFile)
	write(t, file, "# mine\n")
	if err := os.Chown(file, 1234, 4321); err != nil {
		t.Fatal(err)
	}
	if err := config.SaveRule(t.Context(), file, "allow", "a.example"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 1234 || owner.Gid != 4321 {
		t.Errorf("it belongs to %d:%d now", owner.Uid, owner.Gid)
	}
}

// Every change starts from the result of the one before.
func TestSaveRuleRaces(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	file := filepath.Join(top, config.RepositoryFile)
	const callers = 20
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			if err := config.SaveRule(t.Context(), file, "allow", fmt.Sprintf("h%d.example", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	got, err := config.Load(top)
	if err != nil || len(got.Network.Allow) != callers {
		t.Errorf("%d of %d rules are there: %v", len(got.Network.Allow), callers, err)
	}
	alone(t, file)
}

func TestSaveRuleRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, list, rule string
		kind               fault.Kind
		text, hint         string
	}{
		"a bad rule":      {"# mine\n", "allow", "*", fault.Invalid, `cannot use the network rule "*": it would match everything`, `to allow everything, set default = "allow"`},
		"an unknown list": {"# mine\n", "default", "a.example", fault.Internal, `cannot save a network rule: there is no list "default"`, ""},
		"a bad file":      {"\nallow = 1\n", "allow", "a.example", fault.Invalid, `cannot read FILE: line 2, column 1: unknown key "allow"`, `did you mean "network.allow"?`},
		"a full file":     {strings.Repeat("#", config.MaxSize-10), "allow", "a.example", fault.Invalid, "cannot read FILE: it is larger than 131072 bytes", ""},
		"a huge file":     {strings.Repeat("#", config.MaxSize+1), "allow", "a.example", fault.Invalid, "cannot read FILE: it is larger than 131072 bytes", ""},
		"no TOML":         {"[network", "allow", "a.example", fault.Invalid, "cannot read FILE: line 1, column 8: expected ']' to close table name", ""},
		"a wrong section": {"network = 1", "deny", "a.example", fault.Invalid, "cannot read FILE: line 1, column 11: network must be a table, not a number", "[network]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), config.RepositoryFile)
			write(t, file, c.before)
			err := config.SaveRule(t.Context(), file, c.list, c.rule)
			if err == nil {
				t.Fatal("it was accepted")
			}
			want := []string{string(c.kind), strings.ReplaceAll(c.text, "FILE", file), c.hint}
			if diff := cmp.Diff(want, []string{string(fault.KindOf(err)), err.Error(), fault.HintOf(err)}); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
			if diff := cmp.Diff(c.before, content(t, file)); diff != "" {
				t.Errorf("the file changed:\n%s", diff)
			}
			alone(t, file)
		})
	}
}

// A link comes with a clone; a write through it would change a file of the
// user's.
func TestSaveRuleDoesNotFollowLinks(t *testing.T) {
	t.Parallel()
	for name, exists := range map[string]bool{"to a file": true, "to nothing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := filepath.Join(t.TempDir(), "target")
			if exists {
				write(t, target, "# mine\n")
			}
			file := filepath.Join(t.TempDir(), config.RepositoryFile)
			if err := os.Symlink(target, file); err != nil {
				t.Fatal(err)
			}
			err := config.SaveRule(t.Context(), file, "allow", "a.example")
			if fault.KindOf(err) != fault.Denied || err.Error() != "cannot write "+file+": it is a symbolic link" {
				t.Errorf("%v", err)
			}
			if exists && content(t, target) != "# mine\n" {
				t.Error("the target changed")
			}
			if _, err := os.Lstat(target); !exists && err == nil {
				t.Error("the target was made")
			}
		})
	}
}

func TestSaveRuleRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{pipe, t.TempDir(), filepath.Join(t.TempDir(), "missing", "file")} {
		if err := config.SaveRule(t.Context(), file, "allow", "a.example"); err == nil {
			t.Errorf("%s was accepted", file)
		}
	}
}
