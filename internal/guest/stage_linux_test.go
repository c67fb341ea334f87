package guest_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/guest"
)

// roleVariable makes the test binary play a part inside a sandbox instead of
// testing.
const roleVariable = "LITTERBOX_TEST_ROLE"

// stage is what the guest under test needs to know.
type stage struct {
	Lower, Upper, Work string // of the overlay
	Workspace, Home    string
	PrivateKey, Host   []byte
	Env                []string
	NoFilter           bool // renames go unwatched
}

func TestMain(m *testing.M) {
	roles := map[string]func() error{
		"mount":    mountAndServe,
		"serve":    serve,
		"signals":  attackWithSignals,
		"flood":    floodWithSignals,
		"trace":    attackWithTrace,
		"rename":   func() error { return unix.Rename(os.Getenv("A"), os.Getenv("B")) },
		"exchange": exchangeNames,
	}
	name := os.Getenv(roleVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := roles[name](); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// mountAndServe is PID 1 of new namespaces with CAP_SYS_ADMIN: it makes a
// sandbox's mounts, then becomes the guest without any capability.
func mountAndServe() error {
	runtime.LockOSThread() // capabilities belong to a thread
	var s stage
	if err := json.Unmarshal([]byte(os.Getenv("LITTERBOX_TEST_STAGE")), &s); err != nil {
		return err
	}
	overlay := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", s.Lower, s.Upper, s.Work)
	for _, m := range []struct {
		source, target, fs string
		flags              uintptr
		data               string
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"tmpfs", "/run", "tmpfs", 0, ""},
		{"overlay", s.Workspace, "overlay", 0, overlay},
	} {
		if err := unix.Mount(m.source, m.target, m.fs, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := loopback(); err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	os.Setenv(roleVariable, "serve")
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// loopback brings up lo (netdevice(7)).
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

func serve() error {
	var s stage
	if err := json.Unmarshal([]byte(os.Getenv("LITTERBOX_TEST_STAGE")), &s); err != nil {
		return err
	}
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	inherited := os.NewFile(3, "listener")
	listener, err := net.FileListener(inherited)
	if err != nil {
		return err
	}
	inherited.Close()
	config := guest.Config{
		Listener: listener, Ready: os.NewFile(4, "ready"),
		PrivateKey: s.PrivateKey, HostKey: s.Host,
		Workspace: s.Workspace, Home: s.Home, Env: s.Env,
		Notify: notifyRenames,
	}
	if s.NoFilter {
		config.Notify = nil
	}
	return guest.Run(config)
}

// notifyRenames filters the calling thread as the real stage does: the three
// renames are asked about, everything else goes on.
func notifyRenames() (int, error) {
	numbers := map[string][]uint32{"amd64": {82, 264, 316}, "arm64": {38, 276}}[runtime.GOARCH]
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for i, nr := range numbers {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(numbers) - i), K: nr})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const waitKillable = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, kernel 5.19
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|waitKillable, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// attackWithSignals sends PID 1 everything a child can send, every way there is.
func attackWithSignals() error {
	self := os.Getpid()
	fd, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	for sig := unix.Signal(1); sig <= 64; sig++ {
		// The fields of a forged siginfo_t: number, errno, code, then the sender.
		info := [32]uint32{uint32(sig), 0, ^uint32(0), 0, uint32(self), uint32(os.Getuid())} // SI_QUEUE is -1
		if err := unix.Kill(1, sig); err != nil {
			return fmt.Errorf("kill %d: %w", sig, err)
		}
		_ = unix.Tgkill(1, 1, sig)
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		_, _, _ = unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, 1, uintptr(sig), uintptr(unsafe.Pointer(&info)))
		_, _, _ = unix.Syscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(fd), uintptr(sig), uintptr(unsafe.Pointer(&info)), 0, 0, 0)
		// The kernel's own I/O signals: the code is POLL_IN, not a user's.
		const setSignal = 10 // F_SETSIG
		for _, step := range [][2]int{{setSignal, int(sig)}, {unix.F_SETOWN, 1}, {unix.F_SETFL, unix.O_ASYNC}} {
			if _, err := unix.FcntlInt(uintptr(pair[0]), step[0], step[1]); err != nil {
				return fmt.Errorf("fcntl %v: %w", step, err)
			}
		}
		if _, err := unix.Write(pair[1], []byte("x")); err != nil {
			return err
		}
	}
	return nil
}

// floodWithSignals sends PID 1 signals that it handles together with those that
// it has no use for. While a thread handles one it blocks all others, and the
// kernel does not drop those that its first thread blocks.
func floodWithSignals() error {
	useless := []unix.Signal{unix.SIGSTKFLT, unix.SIGPROF, 32, 33, 34}
	ended := make(chan error)
	go func() {
		for n := range 2000 {
			if err := unix.Kill(1, unix.Signal(35+n%30)); err != nil {
				ended <- err
				return
			}
		}
		close(ended)
	}()
	for n := 0; ; n++ {
		select {
		case err := <-ended:
			return err
		default:
		}
		if err := unix.Kill(1, useless[n%len(useless)]); err != nil {
			return err
		}
	}
}

// attackWithTrace fails when PID 1's secrets can be reached.
func attackWithTrace() error {
	for _, name := range []string{"environ", "mem", "maps", "auxv", "stack"} {
		if f, err := os.Open("/proc/1/" + name); err == nil {
			n, err := f.Read(make([]byte, 1))
			f.Close()
			if n > 0 || err == nil {
				return fmt.Errorf("/proc/1/%s can be read", name)
			}
		}
	}
	for fd := range 64 {
		if f, err := os.Open(fmt.Sprintf("/proc/1/fd/%d", fd)); err == nil {
			return fmt.Errorf("%s can be opened", f.Name())
		}
	}
	const seize = 0x4206 // PTRACE_SEIZE
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, seize, 1, 0, 0, 0, 0); errno == 0 {
		return fmt.Errorf("PID 1 can be traced")
	}
	var remote [8]byte
	iov := []unix.Iovec{{Base: &remote[0], Len: 8}}
	if _, err := unix.ProcessVMReadv(1, iov, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0); err == nil {
		return fmt.Errorf("PID 1's memory can be read")
	}
	return nil
}

// exchangeNames swaps two names in one step.
func exchangeNames() error {
	return unix.Renameat2(unix.AT_FDCWD, os.Getenv("A"), unix.AT_FDCWD, os.Getenv("B"), unix.RENAME_EXCHANGE)
}

// ownPath is the test binary, which plays the parts.
func ownPath(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
