package vm_test

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed arm64.sh
var arm64Story []byte

// TestArm64 runs the program for arm64, and every attack of its redteam, on an
// emulated machine of arm64 with Debian's kernel: by root and by an ordinary user.
// LITTERBOX_TEST_ARM64 names the program, LITTERBOX_TEST_ARM64_ROOT a tar of the root
// file system, which is made if missing. LITTERBOX_TEST_ARM64_ONLY names one class of
// attacks to try alone: an attack takes about a minute here.
func TestArm64(t *testing.T) {
	program, saved := os.Getenv("LITTERBOX_TEST_ARM64"), os.Getenv("LITTERBOX_TEST_ARM64_ROOT")
	if program == "" {
		t.Skip("only by make test-arm64")
	}
	if os.Getuid() != 0 {
		t.Fatal("a root file system is made by root: sudo make test-arm64")
	}
	for _, tool := range []string{"mmdebstrap", "cpio", "depmod", "mke2fs", "qemu-system-aarch64", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is missing: apt-get install mmdebstrap cpio e2fsprogs kmod qemu-system-arm", tool)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Hour)
	defer cancel()
	if _, err := os.Stat(saved); err != nil {
		debianForArm64(ctx, t, saved)
	}
	dir := t.TempDir()
	root, image, disk, serial := filepath.Join(dir, "root"), filepath.Join(dir, "image"), filepath.Join(dir, "disk"), filepath.Join(dir, "serial")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	run(ctx, t, "tar", "-C", root, "-xf", saved)
	furnishForArm64(ctx, t, root, program)
	run(ctx, t, "sh", "-c", `cd "$1" && find . -xdev -path ./boot -prune -o -print0 | cpio --null --create --quiet --format=newc >"$2"`, "sh", root, image)
	run(ctx, t, "truncate", "-s", "4G", disk)
	run(ctx, t, "mke2fs", "-q", "-t", "ext4", disk)
	// Pointer authentication as the architecture describes it takes most of an emulator's time.
	run(ctx, t, "qemu-system-aarch64", "-machine", "virt", "-accel", "tcg,thread=multi", "-cpu", "max,pauth-impdef=on", "-smp", "2", "-m", "4096",
		"-display", "none", "-no-reboot", "-net", "none", "-serial", "file:"+serial,
		"-kernel", only(t, root, "boot/vmlinuz-*"), "-initrd", image,
		"-append", "rdinit=/arm64.sh console=ttyAMA0 quiet panic=-1",
		"-drive", "file="+disk+",format=raw,if=virtio")
	judge(t, serial)
}

// debianForArm64 makes the root file system. Its packages are unpacked and not set up:
// that takes programs of arm64 to run here.
func debianForArm64(ctx context.Context, t *testing.T, saved string) {
	t.Log("making a root file system, which takes minutes and is kept in", saved)
	half := saved + ".half.tar"
	run(ctx, t, "mmdebstrap", "--variant=extract", "--architectures=arm64",
		"--include=bash,dash,coreutils,findutils,git,grep,hostname,iproute2,kmod,mount,procps,sed,tar,util-linux,linux-image-cloud-arm64",
		"--dpkgopt=path-exclude=/usr/share/doc/*", "bookworm", half)
	if err := os.Rename(half, saved); err != nil {
		t.Fatal(err)
	}
}

// furnishForArm64 puts the program and its story into the root file system, and what
// the set-up of its packages would have made.
func furnishForArm64(ctx context.Context, t *testing.T, root, program string) {
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	words := ""
	if class := os.Getenv("LITTERBOX_TEST_ARM64_ONLY"); class != "" {
		words = "--only " + class
	}
	for path, content := range map[string][]byte{
		"usr/bin/litterbox": binary,
		"arm64.sh":          arm64Story,
		"redteam":           []byte(words),
		"etc/passwd":        []byte("root:x:0:0::/root:/bin/bash\nordinary:x:1000:1000::/home/ordinary:/bin/bash\n"),
		"etc/group":         []byte("root:x:0:\nordinary:x:1000:\n"),
		"etc/hostname":      []byte("arm64\n"),
		"etc/hosts":         []byte("127.0.0.1 localhost\n"),
	} {
		if err := os.WriteFile(filepath.Join(root, path), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(ctx, t, "depmod", "-b", root, filepath.Base(only(t, root, "lib/modules/*")))
}
