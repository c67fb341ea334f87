package vm_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// configures writes the human's own configuration.
func (h *host) configures(text string) {
	h.t.Helper()
	config := filepath.Join(h.dir, "config", "litterbox", "config.toml")
	err := os.MkdirAll(filepath.Dir(config), 0o755)
	if err == nil {
		err = os.WriteFile(config, []byte(text), 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// eventually asks until the answer has want.
func (h *host) eventually(want string, argv ...string) {
	h.t.Helper()
	var out string
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if out, _ = h.run(argv...); strings.Contains(out, want) {
			return
		}
	}
	h.t.Fatalf("%q never says %q, but\n%s", argv, want, out)
}

// A domain stands still when this machine's disk is full, and goes on when there is
// room; one that was paused when its host ended starts from its disk; a damaged disk is
// named. Nothing that was committed is lost.
func TestLibvirtFailures(t *testing.T) {
	if saved == "" {
		t.Skip("only by make test-vm")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := newHost(ctx, t)
	// The disks of machines have little room.
	machines := filepath.Join(h.dir, "vm", "machines")
	if err := os.MkdirAll(machines, 0o711); err != nil {
		t.Fatal(err)
	}
	h.must("mount", "-t", "tmpfs", "-o", "size=700m,mode=711", "tmpfs", machines)
	t.Cleanup(func() { run(context.Background(), t, "umount", "--lazy", machines) })
	h.endDaemon(syscall.SIGTERM) // it has mounts of its own
	h.startDaemon()
	h.litterbox("create", "box", "--driver", "libvirt")
	domain := h.domain()
	virsh := func(args ...string) string { return h.must(append([]string{"virsh", "-c", h.uri()}, args...)...) }
	h.writes("first")

	filled := make(chan struct{})
	go func() {
		defer close(filled)
		_, _ = h.run(built.Path("litterbox"), "exec", "box", "--no-commit", "--", "sh", "-c", "dd if=/dev/urandom of=$HOME/filling bs=1M count=1000; sync") // its link may be cut
	}()
	h.eventually("paused (I/O error)", "virsh", "-c", h.uri(), "domstate", domain, "--reason")
	h.eventually("could not write", built.Path("litterbox"), "exec", "box", "--no-commit", "--", "true")
	if status := h.litterbox("status", "box"); !strings.Contains(status, "paused (ioerror)") {
		t.Errorf("its status is\n%s", status)
	}
	h.must("mount", "-o", "remount,size=2g", machines)
	h.eventually("running", "virsh", "-c", h.uri(), "domstate", domain)
	<-filled
	h.eventually("first", built.Path("litterbox"), "exec", "box", "--no-commit", "--", "cat", "lines")
	h.litterbox("exec", "box", "--no-commit", "--", "sh", "-c", "rm $HOME/filling")
	h.writes("room", "first")

	// As if this machine was restarted while the sandbox was paused.
	h.litterbox("pause", "box")
	virsh("destroy", domain)
	h.eventually("first\nroom", built.Path("litterbox"), "exec", "box", "--no-commit", "--", "cat", "lines")
	h.writes("restarted", "first", "room")

	h.litterbox("stop", "box")
	disk := filepath.Join(machines, domain, "state.qcow2")
	whole, err := os.ReadFile(disk)
	if err == nil {
		err = os.WriteFile(disk, append([]byte("nothing"), whole[7:]...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := h.run(built.Path("litterbox"), "start", "box"); err == nil || !strings.Contains(out, "its disk is damaged") || !strings.Contains(out, "qemu-img check -r all "+disk) {
		t.Errorf("with a damaged disk: %v\n%s", err, out)
	}
	if committed := strings.TrimSpace(h.must("git", "show", "box:lines")); committed != "first\nroom\nrestarted" {
		t.Errorf("the branch has %q", committed)
	}
	if err := os.WriteFile(disk, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	h.writes("repaired", "first", "room", "restarted")
	h.litterbox("delete", "--force", "--purge", "--stop", "box")
}

// userDisk makes a disk as distributions offer them: a table of partitions, and a root
// that has never booted. Nothing in it belongs to litterbox.
const userDisk = `set -e
cd "$1"
test -d tree || mmdebstrap --quiet --variant=minbase --include=git bookworm tree
echo of-the-user >tree/usr/share/mark
rm -f part disk.raw disk.qcow2
truncate -s 1500M part
case $2 in
ext4) mke2fs -q -t ext4 -d tree part ;;
btrfs) mkfs.btrfs -q --rootdir tree part ;;
esac
truncate -s 1502M disk.raw
echo ',' | sfdisk -q disk.raw
dd if=part of=disk.raw bs=1M seek=1 conv=notrunc,sparse status=none
qemu-img convert -O qcow2 disk.raw disk.qcow2
`

// A sandbox sees the userland of a disk of the user's, which does not boot and is never
// written.
func TestLibvirtDiskOfTheUser(t *testing.T) {
	if saved == "" {
		t.Skip("only by make test-vm")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := newHost(ctx, t)
	disks := filepath.Join(h.dir, "disks")
	if err := os.Mkdir(disks, 0o755); err != nil {
		t.Fatal(err)
	}
	for kind, file := range map[string]string{"ext4": "disk.qcow2", "btrfs": "disk.raw"} {
		h.must("sh", "-c", userDisk, "sh", disks, kind)
		disk := filepath.Join(disks, file)
		before := h.must("sha256sum", disk)
		h.configures("driver = \"libvirt\"\n[vm]\nimage = \"" + disk + "\"\n")
		for _, name := range []string{"one", "two"} { // the second begins with a saved memory
			h.litterbox("create", name)
			if mark := h.litterbox("exec", name, "--no-commit", "--", "cat", "/usr/share/mark"); mark != "of-the-user\n" {
				t.Errorf("with %s, %s sees %q", kind, name, mark)
			}
			if kernel := h.litterbox("exec", name, "--no-commit", "--", "uname", "-r"); !strings.Contains(kernel, "cloud") {
				t.Errorf("inside runs the kernel %s", kernel)
			}
			h.litterbox("exec", name, "--", "sh", "-c", "echo "+kind+" >made; git log -1 --format=%s >seen")
			if made := h.must("git", "show", name+":made"); made != kind+"\n" {
				t.Errorf("the branch has %q", made)
			}
		}
		h.must("touch", disk) // the copy is one of an earlier disk now
		if plan := h.litterbox("prune", "--all", "--dry-run"); strings.Contains(plan, "disk image") {
			t.Errorf("the disk of sandboxes would go:\n%s", plan)
		}
		for _, name := range []string{"one", "two"} {
			h.litterbox("delete", "--force", "--purge", "--stop", name)
		}
		if plan := h.litterbox("prune", "--all", "--dry-run"); !strings.Contains(plan, "no sandbox uses this copy of "+disk) {
			t.Errorf("the copy of the earlier disk would stay:\n%s", plan)
		}
		h.litterbox("prune", "--all", "--yes")
		if plan := h.litterbox("prune", "--all", "--dry-run"); strings.Contains(plan, "disk image") {
			t.Errorf("the copy of the earlier disk is still there:\n%s", plan)
		}
		if after := h.must("sha256sum", disk); after != before {
			t.Errorf("the disk became %s", after)
		}
	}
	h.configures("driver = \"libvirt\"\n[vm]\nimage = \"" + filepath.Join(disks, "tree", "etc", "passwd") + "\"\n")
	if out, err := h.run(built.Path("litterbox"), "create", "none"); err == nil || !strings.Contains(out, "it is no disk image") {
		t.Errorf("with a text for a disk: %v\n%s", err, out)
	}
}
