// Package vm runs the true program on a machine of its own: a Debian with
// systemd, control groups of version 2 and the kernel that Debian ships, in
// QEMU without KVM. It tests what a container cannot show: who manages control
// groups, and what a login session may do.
//
// It needs root, QEMU and a mirror of Debian, so it runs if LITTERBOX_TEST_VM
// names a file for the root file system, which is made once (`make test-vm`).
package vm_test

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var (
	built *program.Built
	saved = os.Getenv("LITTERBOX_TEST_VM") // a tar of the root file system, made if missing

	//go:embed story.sh
	story []byte
)

func TestMain(m *testing.M) {
	if saved == "" {
		os.Exit(m.Run())
	}
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// patience is for a machine whose processor is emulated.
const patience = 25 * time.Minute

func TestMachineWithSystemd(t *testing.T) {
	if saved == "" {
		t.Skip("only by make test-vm")
	}
	if os.Getuid() != 0 {
		t.Fatal("a root file system is made by root: sudo make test-vm")
	}
	for _, tool := range []string{"mmdebstrap", "mke2fs", "qemu-system-x86_64", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is missing: apt-get install mmdebstrap e2fsprogs qemu-system-x86", tool)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := os.Stat(saved); err != nil {
		debian(ctx, t)
	}
	dir := t.TempDir()
	root, disk, serial := filepath.Join(dir, "root"), filepath.Join(dir, "disk"), filepath.Join(dir, "serial")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	run(ctx, t, "tar", "-C", root, "-xf", saved)
	furnish(t, root)
	run(ctx, t, "truncate", "-s", "3G", disk)
	run(ctx, t, "mke2fs", "-q", "-t", "ext4", "-d", root, disk)
	run(ctx, t, "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048",
		"-display", "none", "-no-reboot", "-net", "none", "-serial", "file:"+serial,
		"-kernel", only(t, root, "boot/vmlinuz-*"), "-initrd", only(t, root, "boot/initrd.img-*"),
		"-append", "root=/dev/vda rw console=ttyS0 systemd.mask=serial-getty@ttyS0.service quiet systemd.show_status=0 panic=-1",
		"-drive", "file="+disk+",format=raw,if=virtio")
	judge(t, serial)
}

// debian makes the root file system. Its second half is a rename, so that an
// interrupted one is not taken for whole.
func debian(ctx context.Context, t *testing.T) {
	t.Log("making a root file system, which takes minutes and is kept in", saved)
	half := saved + ".half.tar"
	run(ctx, t, "mmdebstrap", "--variant=minbase",
		"--include=systemd-sysv,dbus,dbus-user-session,libpam-systemd,git,linux-image-amd64,procps,kmod",
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--customize-hook=chroot \"$1\" useradd -m -s /bin/bash ordinary",
		"bookworm", half)
	if err := os.Rename(half, saved); err != nil {
		t.Fatal(err)
	}
}

// furnish puts the program and its story into the root file system.
func furnish(t *testing.T, root string) {
	const unit = `[Unit]
After=multi-user.target dbus.service
[Service]
Type=oneshot
ExecStart=/bin/bash /story.sh
ExecStopPost=/usr/bin/systemctl poweroff --force
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
`
	program, err := os.ReadFile(built.Path("litterbox"))
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{
		"usr/local/bin/litterbox":          program,
		"story.sh":                         story,
		"etc/fstab":                        []byte("/dev/vda / ext4 rw 0 1\n"),
		"etc/systemd/system/story.service": []byte(unit),
	} {
		if err := os.WriteFile(filepath.Join(root, path), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	wants := filepath.Join(root, "etc/systemd/system/multi-user.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../story.service", filepath.Join(wants, "story.service")); err != nil {
		t.Fatal(err)
	}
}

// judge reads the story's output on the serial line.
func judge(t *testing.T, serial string) {
	data, err := os.ReadFile(serial)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(string(data), "\r", ""), "\n")
	passed, over := 0, false
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "ok: "):
			passed++
		case strings.HasPrefix(line, "not ok: "):
			t.Errorf("%s\n%s", line, strings.Join(lines[max(0, i-30):i], "\n"))
		case line == "the story is over":
			over = true
		}
	}
	if !over || passed == 0 {
		t.Fatalf("the machine ended too early, after %d checks:\n%s", passed, data)
	}
	t.Logf("%d checks", passed)
}

func only(t *testing.T, root, pattern string) string {
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: found %q, %v", pattern, found, err)
	}
	return found[0]
}

func run(ctx context.Context, t *testing.T, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &output, &output, 10*time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, output.Bytes())
	}
}
