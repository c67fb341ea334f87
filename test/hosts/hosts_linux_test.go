// Package hosts_test makes sandboxes of the true program on hosts that OpenSSH
// reaches, with a server of the test's own on loopback.
package hosts_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
	"github.com/litterbox-sandbox/litterbox/test/uses"
)

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// hosts is a machine with a host that ssh reaches.
type hosts struct {
	*program.Host
	far      *far
	identity string
	hostKey  string // public
}

func open(t *testing.T) *hosts {
	t.Helper()
	t.Parallel()
	private, public := keys(t)
	hostPrivate, hostPublic := keys(t)
	f := newFar(t, public, read(t, hostPrivate))
	h := built.New(t) // its sandboxes are deleted while the host is there
	return &hosts{client(h, f, hostPublic), f, private, hostPublic}
}

func (h *hosts) address() string {
	h.Helper()
	me, err := user.Current()
	if err != nil {
		h.Fatal(err)
	}
	return "ssh://" + me.Username + "@" + h.far.address
}

// add adds the host, as the machine "big".
func (h *hosts) add() {
	h.Helper()
	h.Must("machine", "add", "big", h.address(), "--identity", h.identity)
}

// refused runs litterbox, which must fail and say each of the words.
func (h *hosts) refused(args []string, words ...string) {
	h.Helper()
	got := h.Litterbox(args...)
	if got.Code == 0 {
		h.Errorf("litterbox %q succeeded:\n%s", args, got.Stdout)
	}
	for _, word := range words {
		if !strings.Contains(got.Stderr, word) {
			h.Errorf("litterbox %q says nothing of %q:\n%s", args, word, got.Stderr)
		}
	}
}

// left returns litterbox's directories there.
func (h *hosts) left() []string {
	h.Helper()
	found, err := filepath.Glob(filepath.Join(h.far.home, ".local/state/litterbox-outposts/*"))
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// A host is added if ssh reaches it without a question, and errors say what to
// type. Removing it leaves nothing.
func TestAddAndRemove(t *testing.T) {
	h := open(t)
	other, _ := keys(t)
	h.refused([]string{"machine", "add", "big", h.address(), "--identity", other}, "accepts none of your keys", "ssh-copy-id")
	known := filepath.Join(h.Dir, "known")
	right := read(t, known)
	h.Put(known, "")
	h.refused([]string{"machine", "add", "big", h.address(), "--identity", h.identity}, "host key is not known yet", "try: ssh -p")
	_, changed := keys(t)
	h.Put(known, strings.Replace(right, h.hostKey, changed, 1))
	h.refused([]string{"machine", "add", "big", h.address(), "--identity", h.identity}, "host key has changed", "ssh-keygen -R")
	h.Put(known, right)
	h.far.refuse(true)
	h.refused([]string{"machine", "add", "big", h.address(), "--identity", h.identity}, `cannot reach the machine "big"`)
	h.far.refuse(false)
	h.refused([]string{"create", "box", "--machine", "big"}, `there is no machine "big"`, "litterbox machine list")
	if left := h.left(); len(left) > 0 {
		t.Errorf("what was refused left %q", left)
	}
	h.add()
	h.refused([]string{"machine", "add", "big", h.address(), "--identity", h.identity}, "there is a machine")
	if left := h.left(); len(left) != 1 {
		t.Fatalf("there are %q", left)
	}
	if listed := h.Must("machine", "list"); !strings.Contains(listed, h.address()) {
		t.Errorf("listed is\n%s", listed)
	}
	var status struct {
		Isolation  string
		Processors int
		Memory     int64 `json:"memory_free_bytes"`
	}
	if err := json.Unmarshal([]byte(h.Must("machine", "test", "big", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	if status.Isolation != "full" || status.Processors < 1 || status.Memory < 1 {
		t.Errorf("it says of itself: %+v", status)
	}
	if got := h.Must("doctor", "--machine", "big"); !strings.Contains(got, "full, available") || !strings.Contains(got, "kept by the network namespace") {
		t.Errorf("doctor:\n%s", got)
	}
	h.far.refuse(true)
	h.refused([]string{"machine", "test", "big"}, `cannot reach the machine "big"`)
	h.refused([]string{"machine", "remove", "big"}, "--forget")
	h.far.refuse(false)
	h.Must("machine", "remove", "big")
	if left := h.left(); len(left) > 0 {
		t.Errorf("removed, there are %q", left)
	}
	if got := h.Must("machine", "list", "--json"); got != "[]" {
		t.Errorf("removed, there is %s", got)
	}
}

// The steps of a sandbox here are done in one there, with the same results here.
func TestSandbox(t *testing.T) {
	h := open(t)
	h.add()
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "machine = \"big\"\n")
	h.Must("create", "box")
	if got := h.InsideShell("box", "echo new >made && rm README && mkdir -p more && echo more >more/file && chmod +x more/file"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := h.Git("show", "--format=", "--raw", "--no-renames", "--abbrev=7", "box"); !strings.Contains(got, "D\tREADME") || !strings.Contains(got, "000000 100755") || !strings.Contains(got, "A\tmade") {
		t.Errorf("committed is\n%s", got)
	}
	if got := h.Must("list", "--machine", "big"); !strings.Contains(got, "box") || !strings.Contains(got, "running") {
		t.Errorf("listed is\n%s", got)
	}
	if os.Getuid() == 0 { // then the host has a root file system of its own
		if got := h.Inside("box", "sh", "-c", "readlink -f $(which cat); ls /usr/share 2>&1"); !strings.Contains(got.Stdout, "/bin/busybox") || !strings.Contains(got.Stdout+got.Stderr, "No such file") {
			t.Errorf("it is not the host's root file system: %+v", got)
		}
	}
	if got := h.Litterbox("exec", "box", "--", "sh", "-c", "exit 7"); got.Code != 7 {
		t.Errorf("the exit code: %+v", got)
	}
	h.refused([]string{"machine", "remove", "big"}, "1 sandboxes are on it: box")
	h.Must("stop", "box")
	if got := h.Must("diff", "box"); !strings.Contains(got, "+more") {
		t.Errorf("the diff of a stopped one:\n%s", got)
	}
	// Unreachable is not lost: it is there again with the host.
	h.Must("start", "box")
	h.far.refuse(true)
	h.refused([]string{"exec", "box", "--", "true"})
	h.far.refuse(false)
	h.back("true")
	if got := h.InsideShell("box", "cat made; echo again >again"); got.Code != 0 || got.Stdout != "new\n" {
		t.Errorf("after the host came back: %+v", got)
	}
	h.Must("merge", "--yes", "box")
	if got := read(t, filepath.Join(h.Repo, "again")); got != "again\n" {
		t.Errorf("merged is %q", got)
	}
	if found, _ := filepath.Glob(h.left()[0] + "/sandboxes/*"); len(found) > 0 {
		t.Errorf("merged, the host keeps %q", found)
	}
	// Deleted, its files stay there for the trash.
	h.Must("create", "kept")
	if got := h.InsideShell("kept", "echo '*.o' >.gitignore && echo ignored >kept.o"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	h.Must("delete", "--force", "kept")
	h.refused([]string{"machine", "remove", "big"}, "it keeps the files of 1 deleted sandbox: kept", "litterbox trash empty --all kept")
	h.Must("trash", "restore", "kept")
	if got := h.Must("exec", "kept", "--", "cat", "kept.o"); got != "ignored" {
		t.Errorf("restored is %q", got)
	}
	h.Must("delete", "--force", "kept")
	h.far.refuse(true)
	if got := h.Litterbox("trash", "empty", "--yes"); got.Code != 0 || !strings.Contains(got.Stderr, "of the deleted sandbox kept stays there until the next litterbox trash empty") {
		t.Errorf("emptied while the host is away: %+v", got)
	}
	h.far.refuse(false)
	if found, _ := filepath.Glob(h.left()[0] + "/sandboxes/*"); len(found) != 1 {
		t.Errorf("emptied while it was away, the host keeps %q", found)
	}
	// A sandbox that runs can be deleted while the host is away, and comes back.
	h.Must("create", "lost")
	if got := h.InsideShell("lost", "echo '*.o' >.gitignore && echo ignored >kept.o"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	h.far.refuse(true)
	h.far.cut()
	if got := h.Litterbox("delete", "--force", "lost"); got.Code != 0 || !strings.Contains(got.Stderr, "its machine does not answer: what runs there goes on until the trash is emptied") {
		t.Errorf("deleted while the host is away: %+v", got)
	}
	h.far.refuse(false)
	h.Must("trash", "restore", "lost")
	if got := h.Must("exec", "lost", "--", "cat", "kept.o"); got != "ignored" {
		t.Errorf("restored is %q", got)
	}
	h.far.refuse(true)
	h.far.cut()
	if got := h.Litterbox("delete", "--force", "--purge", "lost"); got.Code != 0 || !strings.Contains(got.Stderr, "of the deleted sandbox lost stays there until the next litterbox trash empty") {
		t.Errorf("purged while the host is away: %+v", got)
	}
	h.far.refuse(false)
	if found, _ := filepath.Glob(h.left()[0] + "/sandboxes/*"); len(found) != 2 {
		t.Errorf("purged while it was away, the host keeps %q", found)
	}
	h.Must("trash", "empty", "--yes")
	if found, _ := filepath.Glob(h.left()[0] + "/sandboxes/*"); len(found) != 0 {
		t.Errorf("emptied, the host keeps %q", found)
	}
	h.Must("machine", "remove", "big")
	if left := h.left(); len(left) > 0 {
		t.Errorf("removed, there are %q", left)
	}
}

// What people do in a sandbox works on a host as it does here.
func TestUses(t *testing.T) {
	h := open(t)
	h.add()
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "machine = \"big\"\n")
	uses.All(t, h.Host)
}

// The connection may be cut while a command runs: its files are committed, once,
// and a host that has lost everything removes nothing here.
func TestCut(t *testing.T) {
	h := open(t)
	h.add()
	h.Must("create", "box", "--machine", "big")
	cmd := exec.Command(h.Program("litterbox"), "exec", "box", "--", "sh", "-c", "echo early >early; echo begun; sleep 600")
	cmd.Dir, cmd.Env = h.Repo, h.Env
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	if cuts := h.far.cut(); cuts == 0 {
		t.Fatal("there was no connection to cut: the test shows nothing")
	}
	h.back("cat", "early")
	_ = cmd.Process.Signal(os.Interrupt) // it may have ended with its link
	_ = cmd.Wait()
	if got := h.InsideShell("box", "true"); got.Code != 0 {
		t.Errorf("%+v", got)
	}
	if got := h.Git("log", "--format=%H", "box", "--", "early"); strings.Count(got, "\n") != 0 || got == "" {
		t.Errorf("it was committed by %q", got)
	}
	tip := h.Git("rev-parse", "box")
	h.Must("stop", "box")
	there := h.left()[0]
	h.move(there, there+".away")
	h.refused([]string{"exec", "box", "--", "true"})
	h.refused([]string{"merge", "box"})
	if got := h.Git("rev-parse", "box"); got != tip {
		t.Errorf("the branch went from %s to %s", tip, got)
	}
	if err := os.RemoveAll(there); err != nil { // begun again
		t.Fatal(err)
	}
	h.move(there+".away", there)
	h.back("cat", "early")
}

func (h *hosts) move(from, to string) {
	h.Helper()
	if err := os.Rename(from, to); err != nil {
		h.Fatal(err)
	}
}

// back runs a command in the sandbox that has just been unreachable.
func (h *hosts) back(argv ...string) {
	h.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		got := h.Inside("box", argv...)
		if got.Code == 0 {
			return
		}
		if time.Now().After(end) {
			h.Fatalf("it does not come back: %+v", got)
		}
	}
}

// Workers are spread over machines by what these have free; one that does not
// answer is left out and reported.
func TestSpread(t *testing.T) {
	h := open(t)
	h.add()
	h.Must("machine", "add", "second", h.address(), "--identity", h.identity)
	h.refused([]string{"spawn", "2", "--machines", "big,none"}, `there is no machine "none"`)
	out := h.Must("spawn", "2", "--machines", "big,second")
	for _, name := range []string{"big", "second"} { // the same host twice: they have the same free
		if strings.Count(out+"\n", " on the machine "+name+"\n") != 1 {
			t.Errorf("not one of two is on %s:\n%s", name, out)
		}
	}
	got := h.Litterbox("spawn", "2", "--from", filepath.Base(h.Repo)+"-worker-1", "--machines", "big")
	if got.Code == 0 || !strings.Contains(got.Stderr, "a fork is where its sandbox is") {
		t.Errorf("forks are spread: %+v", got)
	}
	h.Must("teardown", "--yes", "--force")
	h.far.refuse(true)
	h.refused([]string{"spawn", "2", "--machines", "big,second"}, "cannot choose a machine", "litterbox machine test big")
	h.far.refuse(false)
}
