package namespace

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
	"github.com/litterbox-sandbox/litterbox/internal/driver/ruleset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// containerFlags are the flags that let Docker and Podman make a sandbox's
// namespaces inside: their default filter refuses them, their AppArmor profile
// mounts, and their masks over /proc a /proc of the sandbox's own
// (mount_too_revealing).
const containerFlags = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"

// Try makes the parts of a sandbox of the full tier, in a child that ends at
// once. Its error names the obstacle, and its hint the remedy.
func (d Driver) Try() error {
	if d.Degraded {
		return refused("it was asked to do without", "unset LITTERBOX_TIER")
	}
	if err := requireFull(); err != nil {
		return err
	}
	if err := try(stage.VerbNothing); err != nil {
		return explained(err)
	}
	if realRoot() { // makes its mounts outside, and the user namespace for the rest
		attr := shiftedNamespaces(stage.Config{Shift: os.Geteuid()})
		if err := tryWith(stage.VerbNothing, attr); err != nil {
			return explained(err)
		}
		attr.Cloneflags |= unix.CLONE_NEWNS // which is unshared later otherwise
		return covered(tryWith(stage.VerbProc, attr))
	}
	return covered(try(stage.VerbProc))
}

// covered is the error that a sandbox cannot mount a /proc of its own: a process
// that may not see parts of one may not have another (mount_too_revealing).
func covered(err error) error {
	if err == nil || container() != "" || !strings.Contains(err.Error(), "/proc") {
		return explained(err)
	}
	return refused("parts of /proc are covered here, and so no other one can be mounted: "+err.Error(),
		"start litterbox where nothing is mounted over parts of /proc (a container: "+containerFlags+")")
}

// refused is the error that there is no full tier. Without Landlock there is no
// other either, which that tier's driver reports itself.
func refused(why, mend string) error {
	if ruleset.ABI() > 0 {
		why += " (--allow-degraded starts it in the degraded one)"
	}
	return fault.Wrap("", driver.ErrLeaseUnavailable, "cannot isolate a sandbox in the full tier here: %s", why).
		WithHint("%s", mend)
}

// explained describes the failure of a child with namespaces of its own.
func explained(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return refused("no more user namespaces may be made (user.max_user_namespaces)", "sudo sysctl -w user.max_user_namespaces=15000")
	case container() != "":
		return refused("this "+container()+" container refuses the namespaces or mounts of a sandbox: "+err.Error(), container()+" run "+flagsFor(container())+" …")
	case errors.Is(err, unix.EPERM) && filtered():
		return refused("a filter of system calls refuses user namespaces, as a container's or a service's does",
			"start litterbox where nothing filters it (systemd: RestrictNamespaces=no; a container: "+containerFlags+")")
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return refused("AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1)",
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
	}
	return refused("the namespaces of a sandbox cannot be made: "+err.Error(), "litterbox doctor")
}

// flagsFor returns containerFlags as that engine spells them. Podman knows the
// masks by another name. Its filter permits namespaces and mounts, but refuses a
// sandbox its host name.
func flagsFor(engine string) string {
	if engine == podman {
		return strings.Replace(containerFlags, "systempaths=unconfined", "unmask=ALL", 1)
	}
	return containerFlags
}

// volumeFor is the flag that puts dir on a file system of the host: a
// container's own root is an overlay, which cannot carry another.
func volumeFor(engine, dir string) string {
	return engine + " run --volume /a/directory/of/the/host:" + dir + " …"
}

// gvisor reports whether gVisor's kernel in user space answers system calls:
// its kernel version is its own, and a newer one would not help.
func gvisor() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && strings.Contains(unix.ByteSliceToString(name.Release[:]), "gvisor")
}

// runcFor starts a container on the machine's own kernel.
func runcFor(engine string) string {
	if engine == podman {
		return "podman --runtime runc run " + flagsFor(engine) + " …"
	}
	return "docker run --runtime runc " + containerFlags + " …"
}

// Engines, by the names of their programs.
const (
	docker = "docker"
	podman = "podman"
)

// container names the engine of the container that this process runs in, if it
// says so.
func container() string {
	for path, name := range map[string]string{"/.dockerenv": docker, "/run/.containerenv": podman} {
		if fileExists(path) {
			return name
		}
	}
	return ""
}

// filtered reports whether system calls of this process are filtered
// (proc_pid_status(5), Seccomp).
func filtered() bool {
	data, err := os.ReadFile("/proc/self/status")
	return err == nil && strings.Contains(string(data), "\nSeccomp:\t2\n")
}
