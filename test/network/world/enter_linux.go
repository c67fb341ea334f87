package world

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// inside tells the second run of a binary from the first.
const inside = "LITTERBOX_TEST_WORLD"

// Main is the TestMain of a package whose tests need a world. It runs the
// binary again in namespaces of its own, makes the world there, builds
// litterbox and further programs, and returns the tests' exit code.
func Main(m *testing.M, set func(*program.Built, *World), packages ...string) int {
	code, again := Enter()
	if !again {
		return code
	}
	w, err := New()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot make the world of the test:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(w.Dir) }()
	return program.Main(m, func(b *program.Built) { set(b, w) }, packages...)
}

// Enter runs this program again, as root in a network and a mount namespace,
// as an ordinary user in a user namespace too, and returns its exit code. In
// the second run it returns true at once.
func Enter() (code int, again bool) {
	if os.Getenv(inside) != "" {
		return 0, true
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	var exit *exec.ExitError
	switch err := cmd.Run(); {
	case errors.As(err, &exit):
		return exit.ExitCode(), false
	case err != nil:
		fmt.Fprintln(os.Stderr, "cannot make namespaces for the test:", err)
		return 1, false
	}
	return 0, false
}

// New makes the world. It belongs to the second run of a program, which has
// namespaces of its own; they end with it.
func New() (*World, error) {
	dir, err := os.MkdirTemp("", "litterbox-world-")
	if err != nil {
		return nil, err
	}
	w := &World{Dir: dir, CA: filepath.Join(dir, "ca.pem"), Names: &Names{known: map[string][]netip.Addr{}, forward: map[string]func([]byte) []byte{}}}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	if w.authority, err = newAuthority(w.CA); err != nil {
		return nil, err
	}
	if err := w.etc(); err != nil {
		return nil, fmt.Errorf("cannot give the machine an /etc of the test's own: %w", err)
	}
	if w.place, err = newPlace(); err != nil {
		return nil, err
	}
	if err := cable(w.place); err != nil {
		return nil, err
	}
	return w, w.resolvers()
}

// serverUser is the user that the servers of the world run as: some refuse to be root.
const (
	serverUser = "outside"
	serverID   = 4242
)

// etc replaces /etc with a copy, as one mount: the machine's resolver and the
// sources of its package managers are the test's.
func (w *World) etc() error {
	// Nothing that is mounted from now on may reach the real machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	etc := filepath.Join(w.Dir, "etc")
	for try := 1; ; try++ {
		// Files that an ordinary user may not read are left out, and cp says so.
		output, err := exec.Command("cp", "-a", "/etc", etc).CombinedOutput()
		if err == nil || os.Geteuid() != 0 || strings.Contains(string(output), "Permission denied") {
			break
		}
		// useradd(8) makes files for a moment and replaces others; cp says so, too.
		if err := errors.Join(fmt.Errorf("%w: %s", err, output), os.RemoveAll(etc)); try == 20 {
			return err
		}
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return err
	}
	files := map[string]string{
		"resolv.conf":   "nameserver " + Resolver + "\n",
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"passwd":        string(passwd) + fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", serverUser, serverID, serverID, w.Dir),
		// The real machine's package managers do not count.
		"apt/sources.list": "", "pip.conf": "", "npmrc": "",
	}
	for name, content := range files {
		path := filepath.Join(etc, name)
		if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(etc, "apt/sources.list.d")); err != nil {
		return err
	}
	return unix.Mount(etc, "/etc", "", unix.MS_BIND, "")
}

// resolvers starts DNS servers where the machine, and programs that know one
// by heart, look for them.
func (w *World) resolvers() error {
	return w.place.do(func() error {
		for _, address := range []string{Resolver, "8.8.8.8", "1.1.1.1", "2001:4860:4860::8888"} {
			datagrams, err := net.ListenPacket("udp", net.JoinHostPort(address, "53"))
			if err != nil {
				return err
			}
			streams, err := net.Listen("tcp", net.JoinHostPort(address, "53"))
			if err != nil {
				return err
			}
			go w.Names.ServeDatagrams(datagrams)
			go Accept(streams, w.Names.serveStream)
		}
		return nil
	})
}
