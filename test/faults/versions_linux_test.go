package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A newer litterbox wrote the record of one sandbox. This one says so, says what
// to type, leaves that sandbox and its record alone, and works with the others.
func TestNewerRecord(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	for _, name := range []string{"box", "other"} {
		h.Must("create", name)
		h.Must("exec", name, "--", "/bin/sh", "-c", "echo kept >kept")
	}
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "[retention]\nmax-age = \"1ms\"\nstates = [\"failed\"]\n")
	path := filepath.Join(stateOf(t, h, "box"), "sandbox.json")
	old, newer := renew(t, path)
	if got := listed(t, h); !slices.Equal(got, []string{"box failed", "other"}) {
		t.Errorf("listed are %q", got)
	}
	for _, args := range [][]string{
		{"exec", "box", "--", "true"}, {"status", "box"}, {"delete", "--force", "box"}, {"stop", "box"}, {"create", "box"}, {"list"},
		{"write", "box", "kept"}, {"log", "box"}, {"diff", "box"}, {"apply", "box"}, {"merge", "box"}, {"milestone", "box", "-m", "all"},
		{"pause", "box"}, {"resume", "box"}, {"start", "box"}, {"limits", "box", "pids=500"}, {"allow", "box", "example.org"}, {"network", "box"},
		{"service", "box"}, {"ports", "box"}, {"prune", "--yes", "--force"},
	} {
		got := h.Litterbox(args...)
		if said := got.Stdout + got.Stderr; !strings.Contains(said, "version 99") || !strings.Contains(said, "install a newer litterbox") {
			t.Errorf("%q says: %s", args, said)
		}
	}
	h.Must("metrics")
	if found, problems := leftovers(t, h, "--fix"); found != nil || problems != nil {
		t.Errorf("doctor finds %q, %q", found, problems)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(newer) {
		t.Errorf("the record is now %s, %v", now, err)
	}
	if got := h.Litterbox("exec", "other", "--", "cat", "kept"); got.Stdout != "kept\n" {
		t.Errorf("the other sandbox: %+v", got)
	}
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.Litterbox("exec", "box", "--", "cat", "kept"); got.Stdout != "kept\n" {
		t.Errorf("with its record as it was: %+v", got)
	}
}

// renew makes the record at path one of a newer litterbox.
func renew(t *testing.T, path string) (old, newer []byte) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer = regexp.MustCompile(`"checksum": ".*"`).ReplaceAll(old, []byte(`"checksum": ""`))
	newer = regexp.MustCompile(`"version": \d+`).ReplaceAll(newer, []byte(`"version": 99`))
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	return old, newer
}

// It wrote one of the other records of a sandbox that is stopped: commands that
// need that record say so, and none overwrites it or takes it for damaged.
func TestNewerFurtherRecords(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "[container]\nports = [\"web\"]\n[container.services.sleeper]\ncommand = [\"sleep\", \"1000\"]\n")
	h.Must("trust")
	for _, name := range []string{"box", "other"} {
		h.Must("create", name)
		h.Must("exec", name, "--", "/bin/sh", "-c", "echo kept >kept")
	}
	dir := stateOf(t, h, "box")
	for _, file := range []string{"lease.json", "services.json", "ports.json"} {
		h.Must("stop", "box")
		path := filepath.Join(dir, file)
		old, newer := renew(t, path)
		for _, args := range [][]string{
			{"list"}, {"log", "box"}, {"diff", "box"}, {"metrics"}, {"prune", "--yes", "--force"}, {"doctor", "--fix"}, {"exec", "other", "--", "cat", "kept"},
		} {
			if got := h.Litterbox(args...); got.Code != 0 || strings.Contains(got.Stdout, "cleared away:") {
				t.Errorf("%s: %q: %+v", file, args, got)
			}
		}
		for _, args := range [][]string{{"exec", "box", "--", "true"}, {"start", "box"}} {
			if got := h.Litterbox(args...); got.Code == 0 || !strings.Contains(got.Stderr, "version 99") || !strings.Contains(got.Stderr, "install a newer litterbox") {
				t.Errorf("%s: %q: %+v", file, args, got)
			}
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != string(newer) {
			t.Errorf("%s is now %s, %v", file, now, err)
		}
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := h.Litterbox("exec", "box", "--", "cat", "kept"); got.Stdout != "kept\n" {
			t.Errorf("with %s as it was: %+v", file, got)
		}
	}
}
