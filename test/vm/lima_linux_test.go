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
)

var (
	// limainit takes the place of cloud-init, which is slow on an emulated processor.
	//go:embed limainit.sh
	limainit []byte
	//go:embed limadhcp.sh
	limadhcp []byte
)

// qemu stands in PATH before the true program, which Lima asks for hardware
// virtualization where there is a /dev/kvm, whether it works or not.
const qemu = `#!/bin/bash
args=()
for a in "$@"; do
	a=${a//accel=kvm/accel=tcg}
	case $a in host) a=max ;; host,*) a=max ;; esac
	args+=("$a")
done
exec /usr/bin/qemu-system-x86_64 "${args[@]}"
`

// limaStory is the life of two sandboxes in machines of their own, by an ordinary user.
const limaStory = `set -eux
cd "$HOME/project"
litterbox create one
litterbox machine status --json | grep -q '"sandbox": "one"'
litterbox exec one -- sh -c 'echo hello >new; uname -n'
git log --format=%s --all | grep -q .
test "$(git show one:new)" = hello
litterbox stop one
limactl --tty=false list | grep litterbox-one- | grep -q Stopped
litterbox diff one | grep -q hello
litterbox start one
litterbox exec one -- cat new | grep -q hello
litterbox create two
litterbox exec two -- sh -c 'test ! -e new'
litterbox delete --force --purge two
test "$(limactl --tty=false list -q | grep -c litterbox-two-)" = 0
litterbox stop one
id=$(basename "$(echo "$HOME"/.local/state/litterbox/sandboxes/one-*)")
rm -rf "$HOME/.local/state/litterbox/sandboxes/$id"
litterbox doctor --fix || true
test "$(limactl --tty=false list -q | grep -c litterbox-one-)" = 0
limactl --tty=false list -q | grep -q litterbox-golden
echo the story is over
`

// The true limactl, which LITTERBOX_TEST_LIMACTL names, with an emulated processor.
func TestLimaMachineEach(t *testing.T) {
	limactl := os.Getenv("LITTERBOX_TEST_LIMACTL")
	if saved == "" || limactl == "" {
		t.Skip("only by make test-vm, with LITTERBOX_TEST_LIMACTL")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	const user = "litterbox-lima"
	run(ctx, t, "useradd", "--create-home", "--shell", "/bin/sh", user)
	t.Cleanup(func() { run(context.WithoutCancel(ctx), t, "userdel", "--remove", user) })
	dir, err := os.MkdirTemp("/tmp", "lbl") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	limaImage(ctx, t, dir)
	program, err := os.ReadFile(built.Path("litterbox"))
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{
		"bin/litterbox": program, "bin/qemu-system-x86_64": []byte(qemu), "story.sh": []byte(limaStory),
		"config/litterbox/config.toml": []byte("driver = \"lima\"\n[vm]\nisolation = \"vm\"\ncpus = 1\nmemory = \"1GiB\"\ndisk = \"2GiB\"\nvmType = \"qemu\"\nimage = \"" + dir + "/disk\"\n"),
		"config/litterbox/lima.yaml": []byte("images:\n- location: " + dir + "/disk\n  arch: x86_64\n  kernel:\n    location: " + dir + "/kernel\n" +
			"    cmdline: root=/dev/vda rw console=ttyS0 init=/sbin/lima-init mitigations=off no_timer_check quiet panic=-1\n" +
			"  initrd:\n    location: " + dir + "/initrd\nfirmware:\n  legacyBIOS: true\n"),
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(ctx, t, "cp", limactl, filepath.Join(dir, "bin", "limactl"))
	home := "/home/" + user
	as := func(script string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "setpriv", "--reuid", user, "--regid", user, "--init-groups", "sh", "-c", script)
		cmd.Dir, cmd.WaitDelay = home, 10*time.Second
		cmd.Env = []string{"HOME=" + home, "USER=" + user, "PATH=" + dir + "/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LIMA_HOME=" + home + "/l", "XDG_CONFIG_HOME=" + dir + "/config"}
		return cmd.CombinedOutput()
	}
	t.Cleanup(func() {
		ctx = context.WithoutCancel(ctx)
		if out, err := as("for one in $(limactl --tty=false list -q); do limactl --tty=false delete --force $one; done"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	const begin = "git config --global user.email a@example.com; git config --global user.name A; git init -q project && cd project && echo one >a && git add a && git commit -qm one; sh $0"
	out, err := as(strings.Replace(begin, "$0", dir+"/story.sh", 1))
	if err != nil || !bytes.Contains(out, []byte("the story is over")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// limaImage makes kernel, initrd and disk of a small Debian. The root file system is
// kept beside the other one.
func limaImage(ctx context.Context, t *testing.T, dir string) {
	tarball := saved + ".lima.tar"
	if _, err := os.Stat(tarball); err != nil {
		t.Log("making a root file system, which takes minutes and is kept in", tarball)
		run(ctx, t, "mmdebstrap", "--variant=minbase",
			"--include=linux-image-amd64,initramfs-tools,openssh-server,sudo,kmod,iproute2,busybox,acpid,procps,git,ca-certificates,passwd",
			"--dpkgopt=path-exclude=/usr/share/doc/*",
			`--essential-hook=mkdir -p "$1/etc/initramfs-tools/conf.d"; echo MODULES=list >"$1/etc/initramfs-tools/conf.d/modules"`,
			`--customize-hook=printf 'virtio_pci\nvirtio_blk\next4\n' >>"$1/etc/initramfs-tools/modules"; chroot "$1" update-initramfs -u; rm -f "$1"/etc/ssh/ssh_host_*`,
			"bookworm", tarball+".half.tar")
		if err := os.Rename(tarball+".half.tar", tarball); err != nil {
			t.Fatal(err)
		}
	}
	root, disk := filepath.Join(t.TempDir(), "root"), filepath.Join(dir, "disk")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	run(ctx, t, "tar", "-C", root, "-xf", tarball)
	for path, content := range map[string][]byte{
		"sbin/lima-init": limainit, "udhcpc.sh": limadhcp, "etc/fstab": []byte("/dev/vda / ext4 rw 0 1\n"),
		// What the machine's set-up needs of systemd.
		"usr/bin/systemd-run": []byte("#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac; do shift; done\nsetsid \"$@\" </dev/null >/dev/null 2>&1 &\n"),
		"usr/bin/systemctl":   []byte("#!/bin/sh\ntest \"$1\" != poweroff || exec sh /etc/acpi/power.sh\n"),
	} {
		if err := os.WriteFile(filepath.Join(root, path), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(ctx, t, "cp", only(t, root, "boot/vmlinuz-*"), filepath.Join(dir, "kernel"))
	run(ctx, t, "cp", only(t, root, "boot/initrd.img-*"), filepath.Join(dir, "initrd"))
	run(ctx, t, "truncate", "-s", "1500M", disk)
	run(ctx, t, "mke2fs", "-q", "-t", "ext4", "-d", root, disk)
	run(ctx, t, "chmod", "644", disk, filepath.Join(dir, "kernel"), filepath.Join(dir, "initrd"))
}
