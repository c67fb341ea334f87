package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
	"github.com/litterbox-sandbox/litterbox/internal/driver/ruleset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Capabilities implements driver.Driver.
func (d Driver) Capabilities() driver.Capabilities {
	full := driver.Tier{Isolation: sandbox.IsolationFull, Available: true}
	for _, obstacle := range obstacles() {
		full.Available = false
		full.Missing = append(full.Missing, obstacle.missing)
		full.Mend = append(full.Mend, obstacle.mend)
	}
	return driver.Capabilities{
		Traits: d.Traits(), Pause: true, Limits: keeps(cgroup.Find()),
		Snapshots: driver.Snapshots{Freeze: true, Live: true}, Fork: true,
		FSMonitor: fsmonitor.Program, Isolation: []driver.Tier{full},
	}
}

type obstacle struct {
	missing string
	mend    string
}

// obstacles probes system calls, and reads the kernel's settings for user
// namespaces, which is cheap; Probe tries the real thing.
func obstacles() []obstacle {
	if gvisor() {
		return []obstacle{{"this container's kernel is gVisor, which has neither mount_setattr nor Landlock", runcFor(container())}}
	}
	var found []obstacle
	if major, minor := kernelVersion(); major < 5 || major == 5 && minor < 12 {
		found = append(found, obstacle{
			fmt.Sprintf("kernel %d.%d is older than 5.12, the first with mount_setattr and overlays in user namespaces", major, minor),
			"install a newer kernel",
		})
	} else if refused := process.Refused("openat2", "memfd_create", "pidfd_open", "open_tree", "mount_setattr"); len(refused) > 0 {
		filter := obstacle{
			"a filter of system calls refuses " + strings.Join(refused, ", ") + ", as a container engine's or a service's does",
			"start litterbox where nothing filters it (systemd: no SystemCallFilter; a container: " + containerFlags + ")",
		}
		if engine := container(); engine != "" {
			filter.mend = engine + " run " + flagsFor(engine) + " …"
		}
		found = append(found, filter)
	}
	if realRoot() {
		return found
	}
	if sysctl("user/max_user_namespaces") == "0" {
		found = append(found, obstacle{"user namespaces are switched off (user.max_user_namespaces = 0)",
			"sudo sysctl -w user.max_user_namespaces=15000"})
	}
	if sysctl("kernel/unprivileged_userns_clone") == "0" {
		found = append(found, obstacle{"ordinary users may not make user namespaces (kernel.unprivileged_userns_clone = 0)",
			"sudo sysctl -w kernel.unprivileged_userns_clone=1"})
	}
	if sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" && !apparmorProfile() {
		found = append(found, obstacle{"AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1)",
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"})
	}
	return found
}

// apparmorProfile reports whether we run under a profile of our own, which can
// grant userns; "unconfined" cannot on a restricting kernel.
func apparmorProfile() bool {
	data, err := os.ReadFile("/proc/self/attr/current")
	return err == nil && !strings.HasPrefix(string(data), "unconfined")
}

func sysctl(name string) string {
	data, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func kernelVersion() (major, minor int) {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return 0, 0
	}
	parts := strings.SplitN(unix.ByteSliceToString(name.Release[:]), ".", 3)
	if len(parts) < 2 {
		return 0, 0
	}
	major, _ = strconv.Atoi(parts[0])
	minor, _ = strconv.Atoi(strings.TrimRight(parts[1], "-+abcdefghijklmnopqrstuvwxyz"))
	return major, minor
}

// requireFull fails closed when the full tier is not available.
func requireFull() error {
	found := obstacles()
	if len(found) == 0 {
		return nil
	}
	return refused(found[0].missing, found[0].mend)
}

// Probe tries everything a sandbox needs, without leaving anything behind.
func (d Driver) Probe(stateDir string) []Finding {
	major, minor := kernelVersion()
	findings := []Finding{{
		Name: "kernel", Needed: true, OK: major > 5 || major == 5 && minor >= 12,
		Found: fmt.Sprintf("%d.%d", major, minor), Mend: "install a kernel of 5.12 or newer",
	}}
	if gvisor() {
		findings[0].OK, findings[0].Found, findings[0].Mend = false, "gVisor", runcFor(container())
	}
	namespaces := Finding{Name: "user namespaces", Needed: true, OK: true, Found: "an ordinary user may make them"}
	if realRoot() {
		namespaces.Found = "run by root: ids are shifted"
	}
	if found := obstacles(); len(found) > 0 {
		namespaces.OK, namespaces.Found, namespaces.Mend = false, found[0].missing, found[0].mend
	} else if err := d.Try(); err != nil {
		namespaces.OK, namespaces.Found, namespaces.Mend = false, err.Error(), fault.HintOf(err)
	}
	findings = append(findings, namespaces)

	landlock := Finding{Name: "Landlock", OK: true, Mend: "boot with lsm=landlock,… (the first wall holds without it)"}
	switch abi := ruleset.ABI(); {
	case abi == 0:
		landlock.OK, landlock.Found = false, "not in this kernel"
	case abi < ruleset.MovesABI:
		landlock.OK, landlock.Found, landlock.Mend = false, fmt.Sprintf("ABI %d, in which nothing moves between directories", abi), "install a kernel of 5.19 or newer (the first wall holds without it)"
	default:
		landlock.Found = fmt.Sprintf("ABI %d", abi)
	}
	findings = append(findings, landlock)

	filter := Finding{Name: "nftables", OK: true, Found: "network policies can be enforced"}
	if namespaces.OK {
		if err := try(stage.VerbNetwork); err != nil {
			filter.OK, filter.Found, filter.Mend = false, "sandboxes have no network at all: "+err.Error(), "sudo modprobe nf_tables nft_redir nf_nat"
		}
		findings = append(findings, filter)
		if filter.OK {
			findings = append(findings, probeUDP())
		}
	}
	findings = append(findings, probeFilters())

	findings = append(findings, limits(), freezing())
	if who, err := user.Current(); err == nil {
		findings = append(findings, logout("/", who.Username)...)
	}

	state := Finding{Name: "state directory", Needed: true, OK: true, Found: stateDir}
	if err := unix.Access(stateDir, unix.W_OK|unix.X_OK); err != nil {
		state.OK, state.Found, state.Mend = false, err.Error(), "export XDG_STATE_HOME=/a/writable/directory"
	}
	findings = append(findings, state)
	if state.OK {
		findings = append(findings, probeLocks(stateDir), probeRoom(stateDir), probeExec(stateDir))
	}
	if namespaces.OK && state.OK {
		findings = append(findings, d.probeCarriage(stateDir))
	}
	return findings
}

// probeCarriage retries what Carriage may remember.
func (d Driver) probeCarriage(stateDir string) Finding {
	_ = os.Remove(filepath.Join(stateDir, trialRecord)) // not there: never tried
	found := Finding{Name: "overlays", OK: true, Found: "sandboxes share files and write only changes"}
	if how, why := d.Carriage(context.Background(), stateDir); how != sandbox.CarriageOverlay {
		found.OK, found.Found = false, "every sandbox gets a copy of all files, which is slower but just as isolated: "+why
		found.Mend = "export XDG_STATE_HOME=/a/directory/on/ext4-xfs-or-btrfs"
		if engine := container(); engine != "" {
			found.Mend += "\n  or start the container with the state on the host: " + volumeFor(engine, stateDir)
		}
	}
	return found
}

// limits says what would keep which limit here.
func limits() Finding {
	where := cgroup.Find()
	var by []string
	for _, name := range sandbox.LimitNames() {
		switch {
		case slices.Contains(cgroup.Keeps(where), name):
			by = append(by, name+": control group")
		case slices.Contains(keeps(where), name):
			by = append(by, name+": rlimit")
		case name == sandbox.LimitTime:
			by = append(by, name+": guest")
		case name == sandbox.LimitMemory, name == sandbox.LimitPIDs, name == sandbox.LimitDisk, name == sandbox.LimitBudget:
			by = append(by, name+": keeper")
		default:
			by = append(by, name+": none")
		}
	}
	found := Finding{Name: "limits", OK: len(cgroup.Keeps(where)) > 0, Found: strings.Join(by, ", ")}
	switch {
	case found.OK:
	case fileExists("/run/systemd/system"):
		found.Mend = "systemd-run --user --scope $SHELL" // below a group that is delegated to the user
	default:
		found.Mend = "run litterbox below a control group that is yours; without one nothing enforces cpus and disk-io"
	}
	return found
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// freezing says how a sandbox is paused here.
func freezing() Finding {
	if cgroup.CanFreeze(cgroup.Find()) {
		return Finding{Name: "pause", OK: true, Found: "by the freezer of a control group"}
	}
	return Finding{Name: "pause", OK: true, Found: "by signals"}
}

// tryPlain starts a child without namespaces of its own.
func tryPlain(verb string) error { return tryWith(verb, nil) }

// try starts a child with the namespaces of a sandbox; it does what verb says
// and ends.
func try(verb string) error {
	if realRoot() {
		return tryWith(verb, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET})
	}
	// As an ordinary user inside, too: its capabilities come another way than
	// root's.
	return tryWith(verb, ownNamespaces(stage.Config{User: driver.User{UID: ordinaryID, GID: ordinaryID}}))
}

// tryWith returns the child's report of its failure. Its status pipe has the
// number that stages expect, so other files come before it.
func tryWith(verb string, attr *syscall.SysProcAttr) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	status, statusWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	defer status.Close()
	child, err := os.StartProcess("/proc/self/exe", []string{"litterbox-guest", verb}, &os.ProcAttr{
		Env: []string{}, Sys: attr, Files: []*os.File{null, null, null, null, null, statusWriter},
	})
	statusWriter.Close() // the child has its own
	if err != nil {
		return err
	}
	said, readErr := io.ReadAll(status)
	state, err := child.Wait()
	if err == nil && !state.Success() {
		err = errors.New(strings.TrimPrefix(string(said), string(stage.StatusError)))
		if len(said) == 0 {
			err = fmt.Errorf("%s", state)
		}
	}
	return errors.Join(err, readErr)
}
