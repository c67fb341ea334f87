package vm_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// libvirtd runs libvirt's daemon in a mount namespace of its own, with the
// directories, the configuration and the user that it expects, so that nothing of this
// machine's libvirt is touched. A restarted daemon finds what the one before knew.
const libvirtd = `set -e
for d in /run/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /etc/libvirt; do
	mkdir -p $d "$DIR/own$d"
	mount --bind "$DIR/own$d" $d
done
mkdir -p /etc/libvirt/qemu /run/libvirt/qemu
cat >/etc/libvirt/qemu.conf <<E
user = "root"
group = "root"
security_driver = "none"
dynamic_ownership = 0
stdio_handler = "file"
namespaces = []
cgroup_controllers = []
E
cat >"$DIR/libvirtd.conf" <<E
unix_sock_dir = "$DIR"
unix_sock_rw_perms = "0777"
auth_unix_rw = "none"
auth_unix_ro = "none"
log_outputs = "3:file:$DIR/libvirtd.log"
E
(cat /etc/passwd; echo libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin) >"$DIR/passwd"
(cat /etc/group; echo libvirt-qemu:x:64055:; echo kvm:x:64056:) >"$DIR/group"
mount --bind "$DIR/passwd" /etc/passwd
mount --bind "$DIR/group" /etc/group
exec libvirtd -f "$DIR/libvirtd.conf" -p "$DIR/pid"
`

// host is a machine with libvirt, and a repository on it.
type host struct {
	t      *testing.T
	ctx    context.Context
	dir    string // short: sockets have their paths below it
	daemon *exec.Cmd
}

func newHost(ctx context.Context, t *testing.T) *host {
	dir, err := os.MkdirTemp("", "lbv")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, ctx: ctx, dir: dir}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for _, below := range []string{"libvirt", "repo", "vm"} {
		if err := os.Mkdir(filepath.Join(dir, below), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The image is made once and kept beside the root file system.
	images := saved + ".images"
	if err := os.MkdirAll(images, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(images, filepath.Join(dir, "vm", "images")); err != nil {
		t.Fatal(err)
	}
	h.startDaemon()
	t.Cleanup(func() { h.endDaemon(syscall.SIGTERM) })
	for _, argv := range [][]string{
		{"git", "config", "--global", "user.name", "one"}, {"git", "config", "--global", "user.email", "one@example.org"},
		{"git", "init", "-q", "."}, {"git", "commit", "-q", "--allow-empty", "-m", "one"},
	} {
		h.must(argv...)
	}
	// Always built: its program must be this tree's.
	h.must(built.Path("litterbox"), "machine", "build-image", "--packages", "git")
	return h
}

func (h *host) startDaemon() {
	h.t.Helper()
	h.daemon = exec.CommandContext(h.ctx, "sh", "-c", libvirtd)
	h.daemon.Env = append(os.Environ(), "DIR="+filepath.Join(h.dir, "libvirt"))
	h.daemon.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Setsid: true}
	if err := h.daemon.Start(); err != nil {
		h.t.Fatal(err)
	}
	for h.ctx.Err() == nil {
		if _, err := h.run("virsh", "-c", h.uri(), "version"); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond) // another program's daemon: there is nothing to wait on
	}
	h.t.Fatal("libvirtd does not answer")
}

func (h *host) endDaemon(signal syscall.Signal) {
	_ = h.daemon.Process.Signal(signal) // it may have ended
	_ = h.daemon.Wait()
}

func (h *host) uri() string { return "qemu:///system?socket=" + h.dir + "/libvirt/libvirt-sock" }

// run returns what a program prints: its output, or when it fails that and its errors.
func (h *host) run(argv ...string) (string, error) {
	cmd := exec.CommandContext(h.ctx, argv[0], argv[1:]...)
	var out, notes bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = filepath.Join(h.dir, "repo"), &out, &notes, 10*time.Second
	cmd.Env = append(os.Environ(), "HOME="+h.dir, "XDG_STATE_HOME="+h.dir+"/s", "XDG_CONFIG_HOME="+h.dir+"/config", "LITTERBOX_VM_DIR="+h.dir+"/vm", "LITTERBOX_VM_EMULATED=1", "LIBVIRT_DEFAULT_URI="+h.uri())
	err := cmd.Run()
	if err != nil {
		return out.String() + notes.String(), err
	}
	return out.String(), nil
}

func (h *host) must(argv ...string) string {
	h.t.Helper()
	out, err := h.run(argv...)
	if err != nil {
		h.t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return out
}

func (h *host) litterbox(args ...string) string {
	h.t.Helper()
	return h.must(append([]string{built.Path("litterbox")}, args...)...)
}

// domain returns the UUID of the one domain.
func (h *host) domain() string {
	h.t.Helper()
	found := strings.Fields(h.must("virsh", "-c", h.uri(), "list", "--all", "--uuid"))
	if len(found) != 1 {
		h.t.Fatalf("there are %d domains: %q", len(found), found)
	}
	return found[0]
}

// writes makes a command write a line, and requires that all lines before are
// there and that branch and working tree agree.
func (h *host) writes(word string, all ...string) {
	h.t.Helper()
	h.litterbox("exec", "box", "--", "sh", "-c", "echo "+word+" >>lines")
	want := strings.Join(append(all, word), "\n")
	if inside := strings.TrimSpace(h.must(built.Path("litterbox"), "exec", "box", "--no-commit", "--", "cat", "lines")); inside != want {
		h.t.Errorf("inside there is %q, not %q", inside, want)
	}
	if committed := strings.TrimSpace(h.must("git", "show", "box:lines")); committed != want {
		h.t.Errorf("the branch has %q, not %q", committed, want)
	}
}

// A sandbox in a domain of its own goes through its life, and through what happens
// to domains and to libvirtd. Nothing that was committed is lost.
func TestLibvirt(t *testing.T) {
	if saved == "" {
		t.Skip("only by make test-vm")
	}
	for _, tool := range []string{"libvirtd", "virsh", "qemu-system-x86_64", "mmdebstrap", "sqfstar", "qemu-img"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is missing: apt-get install libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 qemu-utils mmdebstrap squashfs-tools", tool)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := newHost(ctx, t)
	h.litterbox("create", "box", "--driver", "libvirt")
	domain := h.domain()
	virsh := func(args ...string) string { return h.must(append([]string{"virsh", "-c", h.uri()}, args...)...) }

	text := virsh("dumpxml", domain)
	if strings.Contains(text, "<interface") || strings.Contains(text, "<filesystem") || !strings.Contains(text, "https://litterbox/1") {
		t.Errorf("the domain is\n%s", text)
	}
	// The first machine of an image was saved, and others do not boot.
	h.litterbox("create", "warm", "--driver", "libvirt")
	for _, one := range strings.Fields(virsh("list", "--all", "--uuid")) {
		log, err := os.ReadFile(filepath.Join(h.dir, "vm", "machines", one, "console.log"))
		if err != nil || one != domain && strings.Contains(string(log), "the machine is ready") {
			t.Errorf("the second domain booted: %v\n%s", err, log)
		}
	}
	h.litterbox("delete", "--force", "--purge", "warm")

	if kernel := h.litterbox("exec", "box", "--no-commit", "--", "uname", "-r"); !strings.Contains(kernel, "cloud") {
		t.Errorf("inside runs the kernel %s", kernel)
	}
	h.writes("first")

	h.litterbox("pause", "box")
	if state := virsh("domstate", domain, "--reason"); !strings.Contains(state, "paused (user)") {
		t.Errorf("a paused sandbox's domain is %s", state)
	}
	if list := h.litterbox("list"); !strings.Contains(list, "paused") {
		t.Errorf("it is listed as\n%s", list)
	}
	if metrics := h.litterbox("metrics"); !strings.Contains(metrics, `state="paused",reason="user"`) || !strings.Contains(metrics, "litterbox_machine_balloon_bytes{") {
		t.Errorf("of a paused one is measured\n%s", metrics)
	}
	h.litterbox("snapshot", "box", "paused")
	h.litterbox("resume", "box")
	if metrics := h.litterbox("metrics"); !strings.Contains(metrics, `state="running",reason="unpaused"`) || !strings.Contains(metrics, "litterbox_machine_agent_up{") {
		t.Errorf("of a running one is measured\n%s", metrics)
	}
	if events := h.litterbox("events", "box"); !strings.Contains(events, "paused (user)") || !strings.Contains(events, "running (unpaused)") {
		t.Errorf("its events are\n%s", events)
	}
	h.writes("resumed", "first")

	// A snapshot has the memory: what only that holds is there again.
	h.litterbox("exec", "box", "--no-commit", "--", "sh", "-c", "echo kept >/dev/shm/word; echo ignored >$HOME/mine")
	h.litterbox("snapshot", "box", "whole")
	h.writes("later", "first", "resumed")
	h.litterbox("exec", "box", "--no-commit", "--", "rm", "/dev/shm/word")
	h.litterbox("restore", "box", "whole", "--stop")
	if word := h.litterbox("exec", "box", "--no-commit", "--", "sh", "-c", "cat /dev/shm/word ~/mine lines"); word != "kept\nignored\nfirst\nresumed\n" {
		t.Errorf("after the restore of a snapshot with memory there is %q", word)
	}
	if again := h.domain(); again != domain {
		t.Errorf("the domain %s became %s", domain, again)
	}

	// A fork has a domain of its own, and neither sees the other's writes.
	h.litterbox("fork", "box", "other")
	h.litterbox("exec", "other", "--", "sh", "-c", "echo forked >>lines")
	if mine := h.litterbox("exec", "other", "--no-commit", "--", "sh", "-c", "cat ~/mine lines"); mine != "ignored\nfirst\nresumed\nforked\n" {
		t.Errorf("in the fork there is %q", mine)
	}
	if mine := h.litterbox("exec", "box", "--no-commit", "--", "cat", "lines"); mine != "first\nresumed\n" {
		t.Errorf("beside the fork there is %q", mine)
	}
	h.litterbox("delete", "--force", "--purge", "other")

	h.litterbox("stop", "box")
	if state := virsh("domstate", domain); !strings.Contains(state, "shut off") {
		t.Errorf("a stopped sandbox's domain is %s", state)
	}
	if diff := h.litterbox("diff", "box"); !strings.Contains(diff, "+resumed") {
		t.Errorf("of a stopped sandbox the diff is\n%s", diff)
	}
	h.writes("started", "first", "resumed")

	virsh("destroy", domain)
	h.writes("destroyed", "first", "resumed", "started")
	virsh("destroy", domain)
	virsh("undefine", domain, "--snapshots-metadata")
	h.writes("undefined", "first", "resumed", "started", "destroyed")
	if again := h.domain(); again != domain {
		t.Errorf("the domain %s became %s", domain, again)
	}

	h.endDaemon(syscall.SIGKILL)
	h.writes("unwatched", "first", "resumed", "started", "destroyed", "undefined") // machine and links go on
	if out, err := h.run(built.Path("litterbox"), "pause", "box"); err == nil || !strings.Contains(out, "sudo systemctl start libvirtd") {
		t.Errorf("without libvirtd a pause says %v\n%s", err, out)
	}
	h.startDaemon()
	h.litterbox("pause", "box")
	h.litterbox("resume", "box")

	h.litterbox("merge", "box", "--yes") // deletes it
	if left := strings.Fields(virsh("list", "--all", "--uuid")); len(left) > 0 {
		t.Errorf("domains are left: %q", left)
	}
	if left, err := os.ReadDir(filepath.Join(h.dir, "vm", "machines")); err != nil || len(left) > 0 {
		t.Errorf("disks are left: %v, %v", left, err)
	}
}

// Many sandboxes share one domain, which none of them ends, and which comes back with
// the files of all when it was destroyed or undefined.
func TestLibvirtShared(t *testing.T) {
	if saved == "" {
		t.Skip("only by make test-vm")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := newHost(ctx, t)
	config := filepath.Join(h.dir, "config", "litterbox", "config.toml")
	err := os.MkdirAll(filepath.Dir(config), 0o755)
	if err == nil {
		err = os.WriteFile(config, []byte("driver = \"libvirt\"\n[vm]\nshare = true\ncpus = 2\nmemory = \"1GiB\"\nidle-stop = \"5m\"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	boots := func() int {
		t.Helper()
		log, err := os.ReadFile(filepath.Join(h.dir, "vm", "machines", h.domain(), "console.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(log), "the machine is ready")
	}
	h.litterbox("create", "one")
	h.litterbox("create", "two")
	domain := h.domain()
	text := h.must("virsh", "-c", h.uri(), "dumpxml", domain)
	if !strings.Contains(text, "litterbox.idle=300") || !strings.Contains(text, "libvirt-shared") || boots() != 1 {
		t.Errorf("it began %d times, and is\n%s", boots(), text)
	}
	if list := h.litterbox("list", "--driver", "libvirt-shared"); !strings.Contains(list, "one") || !strings.Contains(list, "two") {
		t.Errorf("listed is\n%s", list)
	}
	if status := h.litterbox("status", "one"); !strings.Contains(status, "libvirt-shared") || !strings.Contains(status, "litterbox-"+domain[:8]) {
		t.Errorf("its status is\n%s", status)
	}
	for _, name := range []string{"one", "two"} {
		h.litterbox("exec", name, "--", "sh", "-c", "echo "+name+" >>lines")
	}
	has := func(name, want string) {
		t.Helper()
		if lines := h.litterbox("exec", name, "--no-commit", "--", "cat", "lines"); lines != want {
			t.Errorf("in %s there is %q, not %q", name, lines, want)
		}
	}
	// A pause is of one sandbox, and a snapshot, too.
	h.litterbox("pause", "one")
	has("two", "two\n")
	h.litterbox("resume", "one")
	h.litterbox("snapshot", "one", "good")
	h.litterbox("exec", "one", "--", "sh", "-c", "echo later >>lines")
	h.litterbox("restore", "one", "good", "--stop")
	has("one", "one\n")
	h.litterbox("fork", "one", "three")
	has("three", "one\n")
	h.litterbox("delete", "--force", "--purge", "three")

	h.litterbox("stop", "one")
	has("two", "two\n")
	h.must("virsh", "-c", h.uri(), "destroy", domain)
	has("one", "one\n")
	has("two", "two\n")
	h.must("virsh", "-c", h.uri(), "destroy", domain)
	h.must("virsh", "-c", h.uri(), "undefine", domain)
	has("two", "two\n")
	has("one", "one\n")
	if again := h.domain(); again != domain {
		t.Errorf("the domain %s became %s", domain, again)
	}
	if out := h.litterbox("prune", "--all", "--yes"); strings.Contains(out, "virtual machine") {
		t.Errorf("with sandboxes in it is cleared away:\n%s", out)
	}
	h.litterbox("delete", "--force", "--purge", "--stop", "one")
	h.litterbox("delete", "--force", "--purge", "--stop", "two")
	h.litterbox("prune", "--all", "--yes")
	if left := strings.Fields(h.must("virsh", "-c", h.uri(), "list", "--all", "--uuid")); len(left) > 0 {
		t.Errorf("domains are left: %q", left)
	}
}
