package faults

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// leftovers returns what doctor finds, as "what: where", and, with --fix, what
// could not be removed.
func leftovers(t *testing.T, h *program.Host, args ...string) (found, problems []string) {
	t.Helper()
	var report struct {
		Leftovers []struct {
			What, Where, Problem string
			Fixed                bool
		}
	}
	got := h.Litterbox(append([]string{"doctor", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil {
		t.Fatalf("doctor exits %d: %v\n%s", got.Code, err, got.Stderr)
	}
	for _, one := range report.Leftovers {
		found = append(found, one.What+": "+one.Where)
		if len(args) > 0 && !one.Fixed {
			problems = append(problems, one.Where+": "+one.Problem)
		}
	}
	return found, problems
}

// old makes a file look untouched for a day.
func old(t *testing.T, path string) {
	t.Helper()
	yesterday := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(path, yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
}

// Half-written records, packs of a killed git and unfinished layers go. What
// only looks like them stays: files that are young, that are called otherwise,
// that belong to a sandbox's own content, links, and packs that others write.
func TestDoctorClearsFiles(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Must("create", "box")
	h.Must("exec", "box", "--", "/bin/sh", "-c", "echo kept >kept")
	state := filepath.Join(h.State, "litterbox")
	box := stateOf(t, h, "box")
	repository := only(t, filepath.Join(state, "repos", "*"))
	packs := filepath.Join(h.Repo, ".git", "objects", "pack")
	pack := func(objects uint32) string {
		return "PACK\x00\x00\x00\x02" + string(binary.BigEndian.AppendUint32(nil, objects)) + "rest"
	}
	gone := map[string]string{ // path to content
		filepath.Join(box, ".sandbox.json-1234567"):                              "{",
		filepath.Join(box, ".policy.json"):                                       "{",
		filepath.Join(box, "stopped.json.new"):                                   "",
		filepath.Join(state, ".ports.json-42"):                                   "",
		filepath.Join(repository, ".git-0123456789abcdef.json-42"):               "{",
		filepath.Join(repository, "names", ".fix-0a1b2c3d"):                      "fix-0a1b2c3d",
		filepath.Join(repository, "cache", "trees", "key.partial-123", "a", "b"): "b",
		filepath.Join(packs, "tmp_pack_AbCdEf"):                                  pack(0),
	}
	stay := map[string]string{
		filepath.Join(box, ".sandbox.json-notes"):            "mine",
		filepath.Join(box, "home", ".sandbox.json-1234567"):  "the sandbox's own",
		filepath.Join(box, "upper", ".sandbox.json-1234567"): "the sandbox's own",
		filepath.Join(state, "notes.json-42"):                "mine",
		filepath.Join(state, ".profile"):                     "mine",
		filepath.Join(packs, "tmp_pack_Fetch1"):              pack(7),
		filepath.Join(packs, "tmp_pack_other"):               "no pack",
	}
	for path, content := range gone {
		h.Put(path, content)
		old(t, path)
	}
	old(t, filepath.Join(repository, "cache", "trees", "key.partial-123"))
	for path, content := range stay {
		h.Put(path, content)
		old(t, path)
	}
	// Young ones may still be being written.
	young := filepath.Join(box, ".lease.json-7654321")
	h.Put(young, "{")
	stay[young] = "{"
	writing := filepath.Join(packs, "tmp_pack_Young1")
	h.Put(writing, pack(0))
	stay[writing] = pack(0)
	// And an old one may still be open.
	held := filepath.Join(packs, "tmp_pack_Held01")
	h.Put(held, pack(0))
	old(t, held)
	stay[held] = pack(0)
	holder, err := os.Open(held)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	link := filepath.Join(box, ".keys.json-1")
	if err := os.Symlink(filepath.Join(h.Repo, "README"), link); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(box, ".agent.json-5")
	if os.Geteuid() == 0 {
		h.Put(foreign, "{")
		old(t, foreign)
		if err := os.Chown(foreign, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		stay[foreign] = "{"
	}

	var wanted []string
	for path := range gone {
		if strings.HasSuffix(path, "/a/b") {
			path = filepath.Dir(filepath.Dir(path))
		}
		wanted = append(wanted, path)
	}
	slices.Sort(wanted)
	for _, args := range [][]string{nil, {"--fix"}} {
		found, problems := leftovers(t, h, args...)
		var where []string
		for _, one := range found {
			_, path, _ := strings.Cut(one, ": ")
			where = append(where, path)
		}
		slices.Sort(where)
		if !slices.Equal(where, wanted) || problems != nil {
			t.Errorf("doctor %q finds %q, not %q; problems %q", args, where, wanted, problems)
		}
	}
	if found, _ := leftovers(t, h); found != nil {
		t.Errorf("after --fix it finds %q", found)
	}
	for path := range gone {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	for path, content := range stay {
		if now, err := os.ReadFile(path); err != nil || string(now) != content {
			t.Errorf("%s is now %q, %v", path, now, err)
		}
	}
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
	if got := h.InsideShell("box", "cat kept"); got.Stdout != "kept\n" {
		t.Errorf("the sandbox: %+v", got)
	}
}

// An old control group without a process goes if its sandbox was here. One in
// which something runs, one of an unknown sandbox, one with another name and
// the live sandbox's stay.
func TestDoctorClearsControlGroups(t *testing.T) {
	t.Parallel()
	h := built.New(t)
	h.Must("create", "box")
	id := filepath.Base(stateOf(t, h, "box"))
	mine, err := filepath.Glob("/sys/fs/cgroup/*/litterbox-" + id)
	if err != nil || len(mine) == 0 {
		t.Skip("sandboxes get no control groups below /sys/fs/cgroup/*/ here")
	}
	parent := filepath.Dir(mine[0])
	var made []string
	for _, name := range []string{"gone", "used", "young", "foreign", "mine"} {
		former := name + id[len(id)-9:] // of this test alone
		switch name {
		case "gone", "used", "young":
			h.Must("create", name)
			former = filepath.Base(stateOf(t, h, name))
			h.Must("delete", "--force", name)
		case "mine":
			former = "mine" + id[len(id)-8:]
		}
		dir := filepath.Join(parent, "litterbox-"+former)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if name != "young" {
			old(t, dir)
		}
		made = append(made, dir)
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
		_ = os.Remove(made[1])
	})
	if err := os.WriteFile(filepath.Join(made[1], "cgroup.procs"), []byte(itoa(sleeper.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	found, _ := leftovers(t, h)
	if !slices.ContainsFunc(found, func(one string) bool {
		return strings.HasPrefix(one, "a control group of a sandbox that is gone: ") && strings.Contains(one, made[0])
	}) {
		t.Errorf("found are %q", found)
	}
	leftovers(t, h, "--fix")
	if _, err := os.Stat(made[0]); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", made[0], err)
	}
	for _, dir := range append(made[1:], mine...) {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}

// A mount in the directory of a sandbox that is gone goes before the directory
// does, and what is in the mount stays; so does a mount of a live sandbox.
func TestDoctorClearsMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can have mounted anything for others to see")
	}
	t.Parallel()
	h := built.New(t)
	h.Must("create", "box")
	precious := filepath.Join(h.Dir, "precious")
	h.Put(filepath.Join(precious, "file"), "mine")
	ghost := filepath.Join(h.State, "litterbox", "sandboxes", "ghost-0a1b2c3d")
	inGhost, inBox := filepath.Join(ghost, "a b"), filepath.Join(stateOf(t, h, "box"), "home", "mine")
	for _, point := range []string{inGhost, inBox} {
		if err := os.MkdirAll(point, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(precious, point, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH) })
	}
	old(t, ghost)
	if got := h.Litterbox("delete", "--force", "box"); got.Code == 0 || !strings.Contains(got.Stderr, "umount "+inBox) {
		t.Errorf("with a mount in it, delete exits %d: %s", got.Code, got.Stderr)
	}
	found, problems := leftovers(t, h, "--fix")
	mount := slices.Index(found, "a mount of a sandbox that is gone: "+inGhost)
	directory := slices.Index(found, "the directory of a sandbox that has no record: "+ghost)
	if mount < 0 || directory < mount || len(problems) != 1 || !strings.Contains(problems[0], inBox) {
		t.Errorf("found are %q, problems %q", found, problems)
	}
	if _, err := os.Stat(ghost); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", ghost, err)
	}
	for _, path := range []string{filepath.Join(precious, "file"), filepath.Join(inBox, "file")} {
		if content, err := os.ReadFile(path); err != nil || string(content) != "mine" {
			t.Errorf("%s holds %q, %v", path, content, err)
		}
	}
	if err := unix.Unmount(inBox, 0); err != nil {
		t.Error(err)
	}
	h.Must("delete", "--force", "box")
}

// only returns the one path that a pattern matches.
func only(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s matches %q, %v", pattern, paths, err)
	}
	return paths[0]
}
