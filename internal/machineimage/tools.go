package machineimage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// packageOf is the package of Debian that holds a tool.
func packageOf(tool string) string {
	switch tool {
	case "mmdebstrap":
		return "mmdebstrap"
	case "sqfstar":
		return "squashfs-tools"
	case "mke2fs":
		return "e2fsprogs"
	case "qemu-img":
		return "qemu-utils"
	case "dpkg-deb":
		return "dpkg"
	}
	return "apt"
}

// tools fails when one of the tools is missing.
func tools(names ...string) error {
	var missing []string
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, packageOf(name))
		}
	}
	if len(missing) > 0 {
		return fault.New(fault.Unavailable, "cannot build an image of virtual machines: tools are missing").
			WithHint("sudo apt-get install %s", strings.Join(missing, " "))
	}
	return nil
}

// command is a tool with the same surroundings on every machine.
func (o Order) command(ctx context.Context, dir string, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(slices.Clone(o.Env), "LC_ALL=C", "TZ=UTC", "SOURCE_DATE_EPOCH=0", "E2FSPROGS_FAKE_TIME=1")
	return cmd
}

// run runs a tool and returns its output.
func (o Order) run(ctx context.Context, dir string, argv ...string) (string, error) {
	cmd := o.command(ctx, dir, argv...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", failed(argv[0], err, &said)
	}
	return out.String(), nil
}

// failed is the error of a tool with the end of its output.
func failed(tool string, err error, said *bytes.Buffer) error {
	text := strings.TrimSpace(said.String())
	if over := len(text) - 2000; over > 0 {
		text = "…" + text[over:]
	}
	return fault.Wrap(fault.Unavailable, fmt.Errorf("%w: %s", err, text), "cannot run %s", tool)
}

// kernel takes the kernel and its modules from Debian's package. It returns the
// directory of the modules.
func (o Order) kernel(ctx context.Context, work string, image *Image) (string, error) {
	meta := "linux-image-cloud-" + runtime.GOARCH
	shown, err := o.run(ctx, work, "apt-cache", "show", "--no-all-versions", meta)
	if err != nil {
		return "", err
	}
	name := regexp.MustCompile(`(?m)^Depends: (linux-image-[0-9][a-z0-9.+-]*)`).FindStringSubmatch(shown)
	if name == nil {
		return "", fault.New(fault.Unavailable, "cannot find the kernel of Debian's package %s", meta).WithHint("sudo apt-get update")
	}
	dir := filepath.Join(work, "kernel")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if _, err := o.run(ctx, dir, "apt-get", "download", "-q", name[1]); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(debs) != 1 {
		return "", fault.New(fault.Unavailable, "cannot download the package %s", name[1])
	}
	image.Kernel = strings.TrimSuffix(filepath.Base(debs[0]), ".deb")
	if _, err := o.run(ctx, dir, "dpkg-deb", "-x", debs[0], dir); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	if err != nil || len(found) != 1 {
		return "", fault.New(fault.Unavailable, "cannot find the kernel in the package %s", name[1])
	}
	if err := os.Rename(found[0], filepath.Join(work, Kernel)); err != nil {
		return "", err
	}
	below, err := filepath.Glob(filepath.Join(dir, "lib", "modules", "*", "kernel"))
	if err != nil || len(below) != 1 {
		return "", fault.New(fault.Unavailable, "cannot find the modules in the package %s", name[1])
	}
	return below[0], nil
}

// userland makes the read-only disk. Anything not needed to run programs stays
// out. An emulated processor unpacks LZ4 fastest.
func (o Order) userland(ctx context.Context, path string) error {
	argv := []string{"mmdebstrap", "--quiet", "--variant=minbase", "--format=tar", "--include=" + strings.Join(o.Packages, ","),
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		// Mount points of a machine, and files that would differ from build to build.
		`--customize-hook=mkdir -p "$1/var/lib/litterbox"`,
		`--customize-hook=rm -rf "$1/var/cache/ldconfig" "$1/var/log/"* "$1/var/cache/apt/"* "$1/var/lib/apt/lists/"* "$1/etc/machine-id" "$1/var/lib/dbus/machine-id"`,
		o.Suite, "-"}
	if o.Mirror != "" {
		argv = append(argv, o.Mirror)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, to := o.command(ctx, filepath.Dir(path), argv...), o.command(ctx, filepath.Dir(path), "sqfstar", "-quiet", "-no-progress", "-comp", "lz4", "-Xhc", path)
	pipe, err := from.StdoutPipe()
	if err != nil {
		return err
	}
	var fromSaid, toSaid bytes.Buffer
	to.Stdin, from.Stderr, to.Stdout, to.Stderr = pipe, &fromSaid, &toSaid, &toSaid
	if err := from.Start(); err != nil {
		return failed("mmdebstrap", err, &fromSaid)
	}
	packed := to.Run()
	if packed != nil {
		cancel() // nothing reads its output
	}
	if err := from.Wait(); err != nil && packed == nil {
		return failed("mmdebstrap", err, &fromSaid)
	}
	if packed != nil {
		return failed("sqfstar", packed, &toSaid)
	}
	return os.Chmod(path, 0o644)
}

// stateSize is how much the places of one machine may fill. The file only takes
// what was written.
const stateSize = "64G"

// stateDisk makes the empty disk below those of machines.
func (o Order) stateDisk(ctx context.Context, path string) error {
	raw := path + ".raw"
	if _, err := o.run(ctx, filepath.Dir(path), "qemu-img", "create", "-q", "-f", "raw", raw, stateSize); err != nil {
		return err
	}
	// Every machine has the same identity of its file system: no two are in one
	// machine.
	const uuid = "11771e4b-0000-4000-8000-000000000001"
	if _, err := o.run(ctx, filepath.Dir(path), "mke2fs", "-q", "-t", "ext4", "-m", "0", "-U", uuid,
		"-E", "hash_seed="+uuid+",lazy_itable_init=1,lazy_journal_init=1", raw); err != nil {
		return err
	}
	if _, err := o.run(ctx, filepath.Dir(path), "qemu-img", "convert", "-O", "qcow2", raw, path); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o644); err != nil {
		return err
	}
	return os.Remove(raw)
}
