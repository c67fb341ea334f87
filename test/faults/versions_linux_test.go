package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A newer litterbox wrote the record of one sandbox. This one says so and what
// to type, leaves that sandbox and its record alone, and works with the others.
func TestNewerRecord(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	for _, name := range []string{"box", "other"} {
		h.Must("create", name)
		h.Must("exec", name, "--", "/bin/sh", "-c", "echo kept >kept")
	}
	path := filepath.Join(stateOf(t, h, "box"), "sandbox.json")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := regexp.MustCompile(`"checksum": ".*"`).ReplaceAll(old, []byte(`"checksum": ""`))
	newer = regexp.MustCompile(`"version": \d+`).ReplaceAll(newer, []byte(`"version": 99`))
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, h); !slices.Equal(got, []string{"box failed", "other"}) {
		t.Errorf("listed are %q", got)
	}
	for _, args := range [][]string{
		{"exec", "box", "--", "true"}, {"status", "box"}, {"delete", "--force", "box"}, {"stop", "box"}, {"create", "box"}, {"list"},
	} {
		got := h.Litterbox(args...)
		if said := got.Stdout + got.Stderr; !strings.Contains(said, "version 99") || !strings.Contains(said, "install a newer litterbox") {
			t.Errorf("%q says: %s", args, said)
		}
	}
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
