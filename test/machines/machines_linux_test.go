// Package machines runs the true program on machines that lack something. They
// are simulated, so that every machine can run the tests: by filters of system
// calls, by mounts in a namespace of the test's own, by limits and the umask.
// Each case works in the full tier, or is refused with what fixes the machine
// and works in the degraded tier on request, or is refused with what fixes it.
// doctor names what it lacks besides isolation.
//
// docs/reference/platforms.md is written from the same table; -update writes it.
package machines_test

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var (
	built  *program.Built
	update = flag.Bool("update", false, "write docs/reference/platforms.md")
)

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }, "test/machines/without"))
}

// tier is the isolation that a machine allows.
type tier string

const (
	full     tier = "full"
	degraded tier = "degraded"
	none     tier = ""
)

// machine is one that lacks something.
type machine struct {
	Name string
	// Enter is a command that runs `sh -c SCRIPT` there, given the script as
	// its last argument; `sh -c` alone where there is none. The program
	// "without" is this test's own.
	Enter []string
	// Mount is run before, where it may mount what the machine should have.
	// HOME is the home, with litterbox's state in it, and $SPARE an empty
	// directory that is not.
	Mount string
	// Before is run last before litterbox.
	Before string

	Tier tier
	// Lacks is the name of what doctor calls absent besides isolation.
	Lacks string
	// Mend is the fix that the refusal or doctor names.
	Mend string
	// Note is what create says about it unasked.
	Note string
}

func without(what string) []string { return []string{"without", what, "sh", "-c"} }

const (
	unfiltered = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
	otherState = "export XDG_STATE_HOME=/a/directory/on/ext4-xfs-or-btrfs"
	// newHome mounts another file system at HOME, and keeps what git knows of
	// the user.
	newHome = `cp "$HOME/.gitconfig" "$SPARE" && mount %s "$HOME" && cp "$SPARE/.gitconfig" "$HOME"`
)

// oldGit prints options of rev-parse that it does not know, as git does.
const oldGit = `cat >"$SPARE/git" <<-'END'
	#!/bin/sh
	case "$*" in
	version) echo git version 2.30.2 ;;
	*--path-format=*) echo --path-format=absolute; exec /usr/bin/env PATH="${PATH#*:}" git rev-parse --git-dir ;;
	*) exec /usr/bin/env PATH="${PATH#*:}" git "$@" ;;
	esac
END
chmod +x "$SPARE/git"
PATH=$SPARE:$PATH`

func machines() []machine {
	const noNamespaces = `echo 0 >/proc/sys/user/max_user_namespaces && exec sh -c "$0"`
	return []machine{
		{Name: "nothing is missing", Tier: full},
		{Name: "`umask 077`", Before: "umask 077", Tier: full},
		{Name: "256 open files for each process", Before: "ulimit -n 256", Tier: full},
		{
			Name:  "user namespaces are switched off (`user.max_user_namespaces = 0`)",
			Enter: []string{"unshare", "--user", "--map-root-user", "sh", "-c", noNamespaces},
			Tier:  degraded, Mend: "sudo sysctl -w user.max_user_namespaces=15000",
		},
		{
			Name:  "a filter refuses the system calls that make user namespaces, as those of containers and services do",
			Enter: without("userns"), Tier: degraded, Mend: unfiltered,
		},
		{
			Name:  "parts of `/proc` are covered, as in containers",
			Mount: "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys",
			Tier:  degraded, Mend: unfiltered,
		},
		{
			Name:  "a filter refuses the system calls that mount step by step (`open_tree`, `mount_setattr`)",
			Enter: without("mounts"), Tier: degraded, Mend: unfiltered,
		},
		{Name: "a filter refuses `openat2`", Enter: without("openat2"), Mend: "--security-opt seccomp=unconfined"},
		{Name: "a filter refuses `memfd_create`", Enter: without("memfd_create"), Mend: "--security-opt seccomp=unconfined"},
		{Name: "a filter refuses `pidfd_open`", Enter: without("pidfd_open"), Mend: "--security-opt seccomp=unconfined"},
		{Name: "a filter refuses `close_range`, `clone3`, `statx`, `faccessat2` and `copy_file_range`", Enter: without("newer"), Tier: full},
		{Name: "a filter refuses `name_to_handle_at` and `open_by_handle_at`", Enter: without("handles"), Tier: full},
		{Name: "the kernel has no Landlock", Enter: without("landlock"), Tier: full, Lacks: "Landlock", Mend: "boot with lsm=landlock,…"},
		{Name: "the kernel has no nftables", Enter: without("nftables"), Tier: full, Lacks: "nftables", Mend: "sudo modprobe nf_tables nft_redir nf_nat"},
		{Name: "a kernel without inotify", Enter: without("inotify"), Tier: full},
		{
			Name: "no control groups are delegated",
			Mount: `[ ! -d /run/systemd ] || mount -t tmpfs -o ro none /run/systemd
				for at in $(awk '/ - cgroup/ {print $5}' /proc/self/mountinfo); do mount -o remount,bind,ro "$at"; done`,
			Tier: full, Lacks: "limits", Mend: "run litterbox below a control group that is yours",
		},
		{Name: "`/sys` is empty", Mount: "mount -t tmpfs -o ro none /sys", Tier: full},
		{Name: "`/dev/shm` is not there", Mount: `if mountpoint -q /dev/shm; then mount -t tmpfs -o ro,mode=000 none /dev/shm; fi`, Tier: full},
		{Name: "no user has an entry in `/etc/passwd`, nor has uid 0", Mount: "mount --bind /dev/null /etc/passwd", Tier: full},
		{Name: "a user id without a name", Enter: []string{"unshare", "--user", "--map-user=4242", "--map-group=4242", "sh", "-c"}, Tier: full},
		{Name: "a user id over 2^31", Enter: []string{"unshare", "--user", "--map-user=3000000000", "--map-group=3000000000", "sh", "-c"}, Tier: full},
		{
			// A release unpacks the guest's program below the state directory.
			Name: "HOME is mounted `noexec`",
			Mount: `export LITTERBOX_GUEST_PROGRAM="$HOME/litterbox-guest-$(sha256sum <"$LITTERBOX" | cut -d" " -f1)" && cp "$LITTERBOX" "$LITTERBOX_GUEST_PROGRAM" &&
				mount --bind "$HOME" "$HOME" && mount -o remount,bind,noexec "$HOME"`,
			Tier: full, Lacks: "programs", Mend: "export XDG_STATE_HOME=/a/directory/where/programs/run", Note: "is mounted noexec",
		},
		{Name: "HOME is a tmpfs", Mount: fmt.Sprintf(newHome, "-t tmpfs none"), Tier: full},
		{
			Name:  "HOME is on a file system that no overlay can write to, as NFS is (tried with ramfs)",
			Mount: fmt.Sprintf(newHome, "-t ramfs none"), Tier: full, Lacks: "overlays", Mend: otherState, Note: "its files are a copy",
		},
		{
			Name:  "HOME is on an overlay, as in containers",
			Mount: fmt.Sprintf(`mkdir "$SPARE/upper" "$SPARE/work" && `+newHome, `-t overlay none -o "lowerdir=$HOME,upperdir=$SPARE/upper,workdir=$SPARE/work,userxattr"`),
			Tier:  full, Lacks: "overlays", Mend: otherState, Note: "its files are a copy",
		},
		{
			Name:  "HOME is read-only",
			Mount: `mount --bind "$HOME" "$HOME" && mount -o remount,bind,ro "$HOME"`,
			Mend:  "export XDG_STATE_HOME=/a/writable/directory",
		},
		{
			Name:  "HOME is read-only, and XDG_STATE_HOME leads elsewhere",
			Mount: `mount --bind "$HOME" "$HOME" && mount -o remount,bind,ro "$HOME" && export XDG_STATE_HOME="$SPARE"`, Tier: full,
		},
		{
			Name:  "the file system of HOME keeps no locks, as NFS without a lock manager",
			Enter: without("locks"), Mend: "export XDG_STATE_HOME=/a/directory/on/a/local/disk",
		},
		{Name: "40 inodes are left", Mount: fmt.Sprintf(newHome, "-t tmpfs -o nr_inodes=40 none"), Lacks: "room", Mend: "df -i "},
		{
			Name:  "some hundred inodes are left",
			Mount: fmt.Sprintf(newHome, "-t tmpfs -o nr_inodes=300 none"), Tier: full, Lacks: "room", Mend: "df -i ",
		},
		{Name: "git is not there", Before: `PATH=$SPARE`, Mend: "install git 2.31 or newer"},
		{Name: "git is older than 2.31", Before: oldGit, Mend: "install git 2.31 or newer"},
	}
}

// command returns the command that runs a script on the machine.
func (m machine) command(h *program.Host, script string) []string {
	enter := slices.Clone(m.Enter)
	switch {
	case m.Mount != "":
		// Any user may mount in a user namespace of its own; root's sandboxes
		// shift ids, which is tried without one.
		enter = []string{"unshare", "--mount", "sh", "-c"}
		if os.Geteuid() != 0 {
			enter = []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c"}
		}
		// The former directory is entered again.
		script = "unset XDG_STATE_HOME XDG_CONFIG_HOME\n{ " + m.Mount + "\n} || exit 1\ncd \"$PWD\"\n" + script
	case len(enter) == 0:
		enter = []string{"sh", "-c"}
	case enter[0] == "without":
		enter[0] = h.Program("without")
	}
	return append(enter, script)
}

// story is what a user does on a machine. Each step leaves its output and its
// exit code in a directory. A sandbox does not outlive the story: it could not
// be found from outside the machine's mounts.
const story = `
step() { name=$1; shift; "$@" >"$SAID/$name.out" 2>"$SAID/$name.err" </dev/null; echo $? >"$SAID/$name.code"; }
trap '"$LITTERBOX" delete --force box >"$SAID/end" 2>&1' EXIT
[ -z "$DOCTOR" ] || step doctor "$LITTERBOX" doctor
step create "$LITTERBOX" create box
[ "$TIER" != degraded ] || step degraded "$LITTERBOX" create box --allow-degraded
[ -n "$TIER" ] || exit 0
step exec "$LITTERBOX" exec box -- sh -c 'echo "echo ran" >made && sh ./made && git status --short'
step show git show box:made
step list "$LITTERBOX" list
step delete "$LITTERBOX" delete --force box
trap - EXIT
`

func TestMachines(t *testing.T) {
	program.Need(t, "unshare")
	for _, m := range machines() {
		// Its directory is named after it, and mount(2) separates by commas.
		t.Run(strings.ReplaceAll(m.Name, ",", ""), func(t *testing.T) {
			t.Parallel()
			h := built.New(t)
			said, spare := filepath.Join(h.Dir, "said"), filepath.Join(h.Dir, "spare")
			for _, dir := range []string{said, spare} {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			h = h.With("LITTERBOX="+h.Program("litterbox"), "TIER="+string(m.Tier), "SAID="+said, "SPARE="+spare, "DOCTOR="+m.Mend)
			command := m.command(h, m.Before+story)
			if got := h.Command(h.Repo, command[0], command[1:]...); got.Code != 0 {
				t.Fatalf("the story ended with %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
			}
			m.check(t, func(step string) program.Result { return read(t, filepath.Join(said, step)) })
		})
	}
}

// read returns what a step left.
func read(t *testing.T, path string) program.Result {
	t.Helper()
	var got program.Result
	for ending, into := range map[string]*string{".out": &got.Stdout, ".err": &got.Stderr} {
		data, err := os.ReadFile(path + ending)
		if err != nil {
			t.Fatal(err)
		}
		*into = string(data)
	}
	data, err := os.ReadFile(path + ".code")
	if err == nil {
		_, err = fmt.Sscan(string(data), &got.Code)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (m machine) check(t *testing.T, step func(string) program.Result) {
	t.Helper()
	create := step("create")
	if (create.Code == 0) != (m.Tier == full) {
		t.Fatalf("create ended with %d:\n%s", create.Code, create.Stderr)
	}
	if m.Tier != full && !strings.Contains(create.Stderr, m.Mend) {
		t.Errorf("the refusal does not say %q:\n%s", m.Mend, create.Stderr)
	}
	if !strings.Contains(create.Stderr, m.Note) {
		t.Errorf("create does not note %q:\n%s", m.Note, create.Stderr)
	}
	if m.Mend != "" {
		m.checkDoctor(t, step("doctor"))
	}
	if m.Tier == none {
		return
	}
	if m.Tier == degraded {
		if !strings.Contains(create.Stderr, "--allow-degraded") {
			t.Errorf("the refusal does not name the degraded tier:\n%s", create.Stderr)
		}
		if got := step("degraded"); got.Code != 0 || !strings.Contains(got.Stderr, "not isolated: ") {
			t.Fatalf("create --allow-degraded ended with %d:\n%s", got.Code, got.Stderr)
		}
	}
	if got := step("exec"); got.Code != 0 || !strings.Contains(got.Stdout, "ran\n") {
		t.Errorf("exec ended with %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := step("show"); got.Stdout != "echo ran\n" {
		t.Errorf("the branch has %q:\n%s", got.Stdout, got.Stderr)
	}
	if got := step("list"); !strings.Contains(got.Stdout, " "+string(m.Tier)+" ") {
		t.Errorf("list does not name the %s tier:\n%s%s", m.Tier, got.Stdout, got.Stderr)
	}
	if got := step("delete"); got.Code != 0 {
		t.Errorf("delete ended with %d:\n%s", got.Code, got.Stderr)
	}
}

// checkDoctor checks that doctor says about the machine what is true there.
func (m machine) checkDoctor(t *testing.T, doctor program.Result) {
	t.Helper()
	if !strings.Contains(doctor.Stdout+doctor.Stderr, m.Mend) {
		t.Errorf("doctor does not say %q:\n%s%s", m.Mend, doctor.Stdout, doctor.Stderr)
	}
	if m.Lacks != "" && !regexp.MustCompile("(?m)^absent +"+m.Lacks+" ").MatchString(doctor.Stdout) {
		t.Errorf("doctor does not call %q absent:\n%s", m.Lacks, doctor.Stdout)
	}
	switch promised := strings.Contains(doctor.Stdout, "isolation: "+string(m.Tier)); {
	case m.Tier != none && !promised:
		t.Errorf("doctor does not say that isolation is %s:\n%s", m.Tier, doctor.Stdout)
	case m.Tier == none && m.Lacks == "" && strings.Contains(doctor.Stdout, "isolation: full"):
		t.Errorf("doctor promises isolation:\n%s", doctor.Stdout)
	}
}

// mac is the part of the page about what no test runs.
//
//go:embed mac.md
var mac string

func TestPlatformsPage(t *testing.T) {
	const path = "../../docs/reference/platforms.md"
	var page strings.Builder
	page.WriteString("# Machines\n\nWhat litterbox does on machines that lack something. The rows are those of `test/machines`, which runs the real program on each.\n\n")
	page.WriteString("| machine | isolation | with `--allow-degraded` | what `doctor` reports missing | how to fix it |\n|---|---|---|---|---|\n")
	for _, m := range machines() {
		mend := ""
		if m.Mend != "" {
			mend = "`" + strings.TrimSpace(m.Mend) + "`"
		}
		isolation, allowed := string(m.Tier), string(m.Tier)
		if m.Tier != full {
			isolation, allowed = "refused", cmp.Or(allowed, "refused")
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", m.Name, isolation, allowed, m.Lacks, mend)
	}
	page.WriteString("\n[Containers](containers.md) of Docker, Podman and gVisor have a page of their own.\n")
	page.WriteString("\n[docs/security.md](../security.md) says what the degraded tier does not isolate; `litterbox doctor` tests what a machine offers.\n")
	page.WriteString("\n" + mac)
	program.Page(t, path, page.String(), *update)
}
