package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// damages are what a crash or a disk does to a record.
var damages = []struct {
	name string
	do   func(content []byte) []byte
}{
	{"flipped", func(content []byte) []byte {
		flipped := bytes.Clone(content)
		flipped[len(content)/2] ^= 4
		return flipped
	}},
	{"cut", func(content []byte) []byte { return content[:len(content)/2] }},
	{"emptied", func([]byte) []byte { return nil }},
}

// notRecords are directories and files of the state that are not our records:
// what sandboxes hold and share, what runs, and what only people read.
var notRecords = []string{"upper", "work", "home", "cache", "caches", "tmp", "bin", "etc", "keeper.log", "locks", "lock", "roots.pem", "roots-own.pem"}

// Whatever record is damaged, and however: the other sandbox is listed and
// works, what was committed is there, and the sandbox whose record it was
// works, too, after the repairs that one command makes by itself.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "[container]\nports = [\"web\"]\n"+
		"[container.services.sleeper]\ncommand = [\"sleep\", \"1000\"]\n")
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "configuration")
	h.Must("trust")
	for _, name := range []string{"box", "other"} {
		h.Must("create", name)
		h.Must("exec", name, "--", "/bin/sh", "-c", "echo kept >kept")
		h.Must("milestone", name, "-m", "kept")
		h.Must("limits", name, "pids=500")
		h.Must("deny", name, "example.org")
	}
	number := 0
	for n, path := range records(t, h) {
		damage := damages[n%len(damages)]
		if n%2 == 1 {
			h.Must("stop", "box")
		}
		number++
		damageRecord(t, h, path, damage.name, damage.do, number)
	}
}

// Every damage to the records without which a sandbox cannot be found at all.
func TestDamagedSandboxRecords(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	for _, name := range []string{"box", "other"} {
		h.Must("create", name)
		h.Must("exec", name, "--", "/bin/sh", "-c", "echo kept >kept")
	}
	number := 0
	for _, path := range records(t, h) {
		switch filepath.Base(path) {
		case "sandbox.json", "lease.json", "policy.json", "keys.json", "box", "repo.json":
			for _, damage := range damages {
				number++
				damageRecord(t, h, path, damage.name, damage.do, number)
			}
		}
	}
}

// With the keeper gone, too: a guest that can no longer be found or talked to
// is started again.
func TestDamagedRecordsWithoutKeeper(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"lease.json", "keys.json"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			h := built.New(t)
			for _, name := range []string{"box", "other"} {
				h.Must("create", name)
				h.Must("exec", name, "--", "/bin/sh", "-c", "echo kept >kept")
			}
			dir := stateOf(t, h, "box")
			killKeeper(t, dir)
			damageRecord(t, h, filepath.Join(dir, file), "emptied", func([]byte) []byte { return nil }, 1)
		})
	}
}

// Without its policy a sandbox reaches nothing, whatever was allowed before,
// until it is allowed again.
func TestDamagedPolicyDeniesEverything(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Must("create", "box")
	h.Must("allow", "box", "example.org")
	path := filepath.Join(stateOf(t, h, "box"), "policy.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A flipped bit makes another rule of it, too.
	if err := os.WriteFile(path, bytes.Replace(content, []byte("example.org"), []byte("example.orf"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Must("exec", "box", "--", "true")
	var network struct {
		Revision int
		Default  string
		Allow    []any
	}
	if err := json.Unmarshal([]byte(h.Must("network", "box", "--json")), &network); err != nil {
		t.Fatal(err)
	}
	if network.Default != "deny" || len(network.Allow) != 0 {
		t.Errorf("in force is %+v", network)
	}
	if got := h.Must("allow", "box", "example.org"); !strings.Contains(got, "example.org") {
		t.Errorf("allowed again: %s", got)
	}
}

// If nothing is left of a record, list names what repairs it, and that does.
func TestLostRecord(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	for _, name := range []string{"box", "other"} {
		h.Must("create", name)
		h.Must("exec", name, "--", "/bin/sh", "-c", "echo kept >kept")
	}
	dir := stateOf(t, h, "box")
	for _, file := range []string{"sandbox.json", "origin.json"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := listed(t, h); !slices.Equal(got, []string{"box failed", "other"}) {
		t.Errorf("listed are %q", got)
	}
	for _, args := range [][]string{{"list"}, {"status", "box"}, {"exec", "box", "--", "true"}, {"create", "box"}} {
		got := h.Litterbox(args...)
		if said := got.Stdout + got.Stderr; !strings.Contains(said, "litterbox delete --force box") {
			t.Errorf("%q does not say what to type: %s", args, said)
		}
	}
	for _, args := range [][]string{{"prune", "--dry-run"}, {"doctor"}, {"metrics"}, {"exec", "other", "--", "cat", "kept"}} {
		if got := h.Litterbox(args...); got.Code != 0 {
			t.Errorf("%q exits %d: %s", args, got.Code, got.Stderr)
		}
	}
	h.Must("delete", "--force", "box")
	if got := h.Git("show", "box:kept"); got != "kept" {
		t.Errorf("the branch holds %q", got)
	}
	if got := listed(t, h); !slices.Equal(got, []string{"other"}) {
		t.Errorf("after that, listed are %q", got)
	}
	h.Git("branch", "-D", "box")
	h.Must("create", "box")
}

func damageRecord(t *testing.T, h *program.Host, path, name string, do func([]byte) []byte, number int) {
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return // a record that a stopped sandbox does not have
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(content) == 0 {
		return
	}
	what := strings.TrimPrefix(path, h.State) + ", " + name
	if err := os.WriteFile(path, do(content), 0o600); err != nil {
		t.Fatal(err)
	}
	before := h.Git("rev-parse", "box")
	if got := listed(t, h); !slices.Equal(got, []string{"box", "other"}) {
		t.Errorf("%s: listed are %q", what, got)
	}
	if got := h.Litterbox("exec", "other", "--", "cat", "kept"); got.Code != 0 || got.Stdout != "kept\n" {
		t.Errorf("%s: the other sandbox exits %d: %s%s", what, got.Code, got.Stdout, got.Stderr)
	}
	script := "cat kept; echo " + itoa(number) + " >number"
	if got := h.InsideShell("box", script); got.Code != 0 || got.Stdout != "kept\n" {
		t.Fatalf("%s: the sandbox exits %d: %s%s", what, got.Code, got.Stdout, got.Stderr)
	}
	if got := h.Git("rev-list", "--count", before+"..box"); got != "1" {
		t.Errorf("%s: %s commits came", what, got)
	}
	if got := h.Git("show", "box:number"); got != itoa(number) {
		t.Errorf("%s: the branch holds %q", what, got)
	}
}

// records lists the records of the sandbox box and those that all share.
func records(t *testing.T, h *program.Host) []string {
	var paths []string
	err := filepath.WalkDir(filepath.Join(h.State, "litterbox"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(notRecords, entry.Name()), strings.HasPrefix(entry.Name(), "other"):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.Type().IsRegular():
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil || len(paths) < 10 {
		t.Fatalf("records: %q, %v", paths, err)
	}
	return paths
}

func listed(t *testing.T, h *program.Host) []string {
	t.Helper()
	var all []struct{ Name, State string }
	if err := json.Unmarshal([]byte(h.Must("list", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all {
		if one.State == "failed" {
			one.Name += " failed"
		}
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return names
}

// stateOf returns the directory of a sandbox's records.
func stateOf(t *testing.T, h *program.Host, name string) string {
	t.Helper()
	var status struct {
		StateDir string `json:"state_dir"`
	}
	if err := json.Unmarshal([]byte(h.Must("status", name, "--json")), &status); err != nil || status.StateDir == "" {
		t.Fatalf("status: %v", err)
	}
	return status.StateDir
}

// killKeeper ends the keeper of the sandbox in dir, and waits until it is gone.
func killKeeper(t *testing.T, dir string) {
	t.Helper()
	var lease struct{ Holder string }
	var keeper struct{ PID int }
	content, err := os.ReadFile(filepath.Join(dir, "lease.json"))
	if err = errors.Join(err, json.Unmarshal(content, &lease)); err == nil {
		err = json.Unmarshal([]byte(lease.Holder), &keeper)
	}
	if err != nil || keeper.PID < 2 {
		t.Fatalf("the keeper is process %d: %v", keeper.PID, err)
	}
	process, err := os.FindProcess(keeper.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It has no parent here: init reaps it.
	for deadline := time.Now().Add(time.Minute); process.Signal(syscall.Signal(0)) == nil; time.Sleep(5 * time.Millisecond) {
		if stat, err := os.ReadFile(filepath.Join("/proc", itoa(keeper.PID), "stat")); err == nil && bytes.Contains(stat, []byte(") Z ")) {
			return // where nothing reaps
		}
		if time.Now().After(deadline) {
			t.Fatal("the keeper does not end")
		}
	}
}
