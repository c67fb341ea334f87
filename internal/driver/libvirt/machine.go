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
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
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
	Image  func() (string, error)
	Memory int           // MiB of a domain; 0 is 1024
	CPUs   int           // 0 is 2
	Idle   time.Duration // how long until a domain without a running place ends; 0 is 10 minutes
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

// ports is how many links to a domain there can be at a time: the keeper's and
// those of commands.
const ports = 12

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

// Machine is the domain of one sandbox. It implements remote.Machine.
type Machine struct {
	Options  Options
	StateDir string // of the sandbox; empty means no domain, only what libvirt can do
}

// Name implements remote.Machine.
func (m Machine) Name() string {
	if m.StateDir == "" {
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
	return m.locked(ctx, func() error {
		h, err := readHandle(m.StateDir)
		if errors.Is(err, driver.ErrMachineLost) {
			if h, err = m.newHandle(); err == nil {
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
func (m Machine) newHandle() (handle, error) {
	image, err := m.Options.Image()
	if err != nil {
		return handle{}, err
	}
	h := handle{Version: 1, Driver: Name, URI: m.uri(), UUID: newUUID(), Image: image}
	h.Dir = m.dir(h.URI, h.UUID)
	return h, h.write(m.StateDir)
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
		if err := m.stuck(h, answer); err != nil {
			return err
		}
		_, err := m.ask(ctx, h, OpResume)
		return errors.Join(err, m.unmark(h))
	}
	if err := m.prepare(h); err != nil {
		return err
	}
	if err := m.define(ctx, h); err != nil {
		return err
	}
	if _, err := m.ask(ctx, h, OpStart); err != nil {
		return err
	}
	return m.awaited(ctx, h)
}

// stuck is the error of a domain that stands still since it could not write.
func (m Machine) stuck(h handle, answer Answer) error {
	if answer.State == Paused && answer.Reason == "ioerror" {
		return fault.Wrap("", driver.ErrDiskFull, "cannot use the domain %s: it stands still since it could not write", h.UUID).
			WithHint("df -h %s", h.Dir)
	}
	return nil
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
	err := overlayOn(h.disk(), filepath.Join(h.Image, "state.qcow2"))
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
	return nil
}

func (m Machine) refused(h handle, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(fault.Denied, err, "cannot make the disk of the domain").WithHint("export LIBVIRT_DEFAULT_URI=qemu:///session")
	}
	return driver.Seal(err, "cannot make the disk of the domain")
}

func (m Machine) domain(h handle) domain {
	d := domain{
		Name: nameOf(h.UUID), UUID: h.UUID, Sandbox: filepath.Base(m.StateDir), Type: "qemu",
		Memory: m.Options.Memory, CPUs: m.Options.CPUs, Image: h.Image, Dir: h.Dir, Ports: make([]string, ports), Idle: int(m.Options.Idle.Seconds()),
	}
	if d.Memory == 0 {
		d.Memory = 1024
	}
	if d.CPUs == 0 {
		d.CPUs = 2
	}
	if d.Idle == 0 {
		d.Idle = 600
	}
	if !m.Options.Emulated && kvm() {
		d.Type = "kvm"
	}
	return d
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

// Dial implements remote.Machine. It starts nothing: a domain that is off has no
// places.
func (m Machine) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	h, err := readHandle(m.StateDir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	conn, err := m.dial(ctx, h)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// dialPatience is how long a running machine may take to answer.
const dialPatience = 30 * time.Second

// dial begins a link over a free port.
func (m Machine) dial(ctx context.Context, h handle) (net.Conn, error) {
	conn, err := m.port(ctx, h)
	if err != nil {
		return nil, err
	}
	link, err := outpost.DialPort(ctx, conn)
	if err != nil {
		return nil, driver.Joined(driver.ErrUnreachable, fmt.Errorf("the outpost of the domain does not answer: %w", err))
	}
	return link, nil
}

// port connects to a free port. Locks tell which are free: the kernel drops a lock
// with the process that holds it.
func (m Machine) port(ctx context.Context, h handle) (net.Conn, error) {
	for {
		for port := range ports {
			f, err := os.OpenFile(filepath.Join(h.Dir, fmt.Sprintf("%d.lock", port)), os.O_CREATE|os.O_RDWR, 0o600)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, driver.ErrMachineLost
			}
			if err != nil {
				return nil, driver.Joined(driver.ErrUnreachable, err)
			}
			if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
				f.Close()
				continue
			}
			conn, err := connect(ctx, socketOf(h.Dir, port))
			if err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return &held{conn, f}, nil
		}
		select {
		case <-ctx.Done():
			return nil, driver.Joined(driver.ErrUnreachable, fmt.Errorf("all %d ports of the domain are in use", ports))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func connect(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, driver.ErrMachineLost // QEMU is not there
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.Wrap(fault.Denied, err, "cannot reach the ports of the domain").WithHint("export LIBVIRT_DEFAULT_URI=qemu:///session")
	case err != nil:
		return nil, driver.Joined(driver.ErrUnreachable, err)
	}
	return conn, nil
}

// held is a connection with the lock of its port.
type held struct {
	net.Conn
	lock *os.File
}

func (h *held) Close() error { return errors.Join(h.Conn.Close(), h.lock.Close()) }

// printable removes what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
