// Package libvirt is virtual machines for places: a domain of libvirt for each
// sandbox, started from an image of our own (package machineimage) with an overlay
// on its empty disk. A domain has no network card and no directory of the host; an
// outpost in it answers on ports of virtio, whose sockets stay when libvirtd ends.
//
// Places in a domain are those of any machine (package remote). Requests to
// libvirt itself go through a [Hypervisor], so that the library that speaks its
// protocol is linked only where it is needed. Start reading at [Machine.Ensure].
package libvirt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Name is the driver of places in domains of libvirt.
const Name = "libvirt"

// Options say how domains are made.
type Options struct {
	Hypervisor Hypervisor
	URI        string // of libvirt; empty is [DefaultURI]
	Dir        string // where the disks of the system's domains are
	// Image finds the newest image: the directory of its files.
	Image func() (string, error)
	// WithDisk returns the directory of an image with the userland of a disk image of the
	// user's, and the rest of a built one.
	WithDisk func(ctx context.Context, built, file string) (string, error)
	// DiskOf returns the disk that an image is a copy of, "" for built ones, and whether new
	// machines no longer begin with it.
	DiskOf func(built, image string) (disk string, stale bool)
	// Emulated makes QEMU emulate the processor even where hardware could virtualize.
	Emulated bool
}

// DefaultURI returns the URI of the user's own libvirt, or the system's for root.
func DefaultURI() string {
	if os.Geteuid() == 0 {
		return "qemu:///system"
	}
	return "qemu:///session"
}

// Traits returns the traits of every place in a domain.
func Traits() sandbox.Traits {
	return sandbox.Traits{
		System: "linux", Architecture: runtime.GOARCH,
		Files: sandbox.FilesCarried, Mounts: sandbox.MountsNone,
		Network: sandbox.NetworkStreams, Enforcer: "virtual machine without a network card",
		Metrics:   []string{sandbox.MetricCPU, sandbox.MetricMemory, sandbox.MetricProcesses, sandbox.MetricThreads, sandbox.MetricUptime},
		KeepsHome: true,
	}
}

// Machine is the domain of one sandbox, or of many. It implements remote.Machine.
type Machine struct {
	Options  Options
	StateDir string    // of the sandbox, or of the shared domain; empty means no domain, only what libvirt can do
	Shared   bool      // many sandboxes are in it
	given    driver.VM // what a new domain gets
}

// With implements remote.Outfitted. The first sandbox of a shared domain decides.
func (m Machine) With(vm driver.VM) remote.Machine {
	m.given = vm
	return m
}

// Name implements remote.Machine.
func (m Machine) Name() string {
	switch {
	case m.Shared && m.StateDir == "":
		return SharedName
	case m.Shared:
		return Name + " shared"
	case m.StateDir == "":
		return Name
	}
	return Name + " " + filepath.Base(m.StateDir)
}

func (m Machine) uri() string {
	if m.Options.URI != "" {
		return m.Options.URI
	}
	return DefaultURI()
}

// dir is the directory for the disk of a new domain. The QEMU of the system's
// libvirt runs as another user, who cannot reach a private directory.
func (m Machine) dir(uri, uuid string) string {
	if strings.HasSuffix(strings.SplitN(uri, "?", 2)[0], "/system") {
		return filepath.Join(m.Options.Dir, "machines", uuid)
	}
	return filepath.Join(m.StateDir, "vm")
}

// ask asks libvirt about the domain.
func (m Machine) ask(ctx context.Context, h handle, op Op) (Answer, error) {
	return m.Options.Hypervisor.Do(ctx, Request{Op: op, URI: h.URI, UUID: h.UUID})
}

// locked runs do while no other process makes, starts or ends the domain.
func (m Machine) locked(ctx context.Context, do func() error) error {
	f, err := os.OpenFile(filepath.Join(m.StateDir, "libvirt.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return driver.ErrMachineLost // there never was one
	}
	if err != nil {
		return driver.Seal(err, "cannot open the lock of the sandbox's domain")
	}
	defer f.Close()
	if err := lock.File(ctx, f); err != nil {
		return err
	}
	return do()
}

// Ensure implements remote.Machine: it makes the domain, or starts it.
func (m Machine) Ensure(ctx context.Context) error {
	if runtime.GOARCH != "amd64" {
		return fault.Wrap("", driver.ErrUnsupported, "cannot make a virtual machine on %s", runtime.GOARCH)
	}
	if strings.Contains(strings.SplitN(m.uri(), ":", 2)[0], "+") {
		return fault.Wrap("", driver.ErrUnsupported, "cannot make a virtual machine at %s: its ports are sockets of this machine", m.uri())
	}
	if err := os.MkdirAll(m.StateDir, 0o700); err != nil {
		return driver.Seal(err, "cannot make the directory of the domain")
	}
	return m.locked(ctx, func() error {
		h, err := readHandle(m.StateDir)
		if errors.Is(err, driver.ErrMachineLost) {
			h, err = m.newHandle(ctx)
			if err == nil && !m.Shared { // a saved machine would serve once
				return m.begin(ctx, h)
			}
		}
		if err != nil {
			return err
		}
		return m.start(ctx, h)
	})
}

// newHandle names a domain that does not exist yet.
func (m Machine) newHandle(ctx context.Context) (handle, error) {
	image, err := m.image(ctx)
	if err != nil {
		return handle{}, err
	}
	h := handle{Version: 1, Driver: Name, URI: m.uri(), UUID: newUUID(), Image: image, CPUs: m.given.CPUs, Memory: int(m.given.Memory >> 20), Idle: m.given.Idle}
	h.Dir = m.dir(h.URI, h.UUID)
	return h, h.write(m.StateDir)
}

// image is the directory of the image that a new domain begins with. A name in vm.image
// is one of Lima's, and has no meaning here.
func (m Machine) image(ctx context.Context) (string, error) {
	image, err := m.Options.Image()
	switch given := m.given.Image; {
	case err != nil:
		return "", err
	case filepath.IsAbs(given):
		return m.Options.WithDisk(ctx, image, given)
	case strings.Contains(given, "://"):
		return "", fault.Wrap("", driver.ErrUnsupported, "cannot make a virtual machine from %q: the driver %s takes a file as vm.image", given, Name).
			WithHint("curl -LO %s, and its path as vm.image", given)
	}
	return image, nil
}

// start brings the domain up, and returns when its outpost answers. Only one
// process does that at a time.
func (m Machine) start(ctx context.Context, h handle) error {
	answer, err := m.ask(ctx, h, OpState)
	if err != nil {
		return err
	}
	switch {
	case answer.State == Runs:
		return nil
	case answer.State == Paused:
		return errors.Join(m.goOn(ctx, h, answer), m.unmark(h))
	}
	if err := m.prepare(h); err != nil {
		return err
	}
	if err := m.define(ctx, h); err != nil {
		return err
	}
	if _, err := m.ask(ctx, h, OpStart); err != nil {
		return m.explained(h, err)
	}
	return m.awaited(ctx, h)
}

// define tells libvirt what the domain is.
func (m Machine) define(ctx context.Context, h handle) error {
	text, err := m.domain(h).text()
	if err != nil {
		return fault.Wrap("", driver.ErrLeaseUnavailable, "cannot describe the domain: %v", err)
	}
	_, err = m.Options.Hypervisor.Do(ctx, Request{Op: OpDefine, URI: h.URI, UUID: h.UUID, XML: text})
	return err
}

// prepare makes the files that the domain needs on disk. What it has written stays.
func (m Machine) prepare(h handle) error {
	if err := m.makeDir(h); err != nil {
		return err
	}
	backing := filepath.Join(h.Image, "state.qcow2")
	if _, err := os.Stat(backing); errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap("", driver.ErrLeaseUnavailable, "cannot start the domain %s: the image that its disk stands on is gone from %s", h.UUID, h.Image).
			WithHint("litterbox machine build-image")
	}
	err := overlayOn(h.disk(), backing)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return m.refused(h, err)
	}
	return m.unmark(h)
}

// makeDir makes the directory for the domain's files.
func (m Machine) makeDir(h handle) error {
	if err := os.MkdirAll(filepath.Dir(h.Dir), 0o711); err != nil {
		return m.refused(h, err)
	}
	if err := os.Mkdir(h.Dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return m.refused(h, err)
	}
	return h.hold()
}

func (m Machine) refused(h handle, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(fault.Denied, err, "cannot make the disk of the domain").WithHint("export LIBVIRT_DEFAULT_URI=qemu:///session")
	}
	return driver.Seal(err, "cannot make the disk of the domain")
}

func (m Machine) domain(h handle) domain {
	d := domain{
		Name: nameOf(h.UUID), UUID: h.UUID, Sandbox: m.sandbox(), Type: "qemu",
		Memory: h.Memory, CPUs: h.CPUs, Image: h.Image, Root: rootOf(h.Image), Dir: h.Dir, Ports: make([]string, m.ports()), Idle: int(h.Idle.Seconds()),
	}
	if d.Memory == 0 {
		d.Memory = 1024
		if m.Shared {
			d.Memory = 4096
		}
	}
	if d.CPUs == 0 {
		d.CPUs = 2
		if m.Shared {
			d.CPUs = 4
		}
	}
	if h.Idle == 0 {
		d.Idle = 600
	}
	if !m.Options.Emulated && kvm() {
		d.Type = "kvm"
	}
	return d
}

// sandbox is what the domain's metadata names.
func (m Machine) sandbox() string {
	if m.Shared {
		return SharedName
	}
	return filepath.Base(m.StateDir)
}

// kvm reports whether this machine virtualizes by hardware.
func kvm() bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// bootPatience is for an emulated processor on a busy machine.
const bootPatience = 4 * time.Minute

// awaited returns when the outpost answers, or the reason why the domain ended.
func (m Machine) awaited(ctx context.Context, h handle) error {
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	go func() { // a port that QEMU serves and no guest reads says nothing
		defer cancel()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				if answer, err := m.ask(ctx, h, OpState); err == nil && answer.State != Runs {
					return
				}
			}
		}
	}()
	conn, err := m.dial(ctx, h)
	if err == nil {
		return conn.Close()
	}
	if answer, asked := m.ask(context.WithoutCancel(ctx), h, OpState); asked == nil && answer.State != Runs {
		return m.died(h, answer)
	}
	return err
}

// died reports why a domain ended as it started: the machine's last lines.
func (m Machine) died(h handle, answer Answer) error {
	log, err := os.ReadFile(filepath.Join(h.Dir, "console.log"))
	said := strings.TrimSpace(string(log[max(0, len(log)-600):]))
	if err != nil || said == "" {
		said = "it wrote nothing"
	}
	return fault.Wrap("", driver.ErrLeaseUnavailable, "cannot start the domain %s: it is %s (%s): %s", h.UUID, answer.State, answer.Reason, printable(said))
}

// printable removes what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
