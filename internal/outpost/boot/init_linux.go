package boot

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Is reports whether this process is the first one of a machine.
func Is(args []string) bool { return os.Getpid() == 1 && len(args) > 0 && args[0] == "/init" }

// ended is the exit code of the answering process when the machine should end.
const ended = 42

// Main is the first process. answer are the arguments with which this program
// answers on the ports ([Answer]). It does not return.
func Main(answer []string) int {
	if err := prepare(); err != nil {
		// The console is the machine's log, and the host has nothing else to read.
		fmt.Println("litterbox: cannot start the machine:", err)
		time.Sleep(time.Second) // the console is slow
		off()
	}
	fmt.Println("litterbox: the machine is ready")
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGPIPE)
	for {
		started := time.Now()
		child, err := os.StartProcess("/proc/self/exe", answer, &os.ProcAttr{
			Dir: State, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
			Sys: &unix.SysProcAttr{Setsid: true},
		})
		if err != nil {
			fmt.Println("litterbox: cannot answer:", err)
			off()
		}
		if reap(child.Pid) == ended {
			off()
		}
		if time.Since(started) < time.Second {
			time.Sleep(time.Second) // one that ends at once must not fill the log
		}
	}
}

// reap waits for every process that ends here until the answering one does.
func reap(answering int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.ECHILD) {
			return -1
		}
		if pid == answering && (status.Exited() || status.Signaled()) {
			return status.ExitStatus()
		}
	}
}

// off writes memory to the disks and ends the machine.
func off() {
	unix.Sync()
	if err := unix.Mount("", State, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		unix.Sync() // places still write: the journal keeps the disk whole
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // it does not return
	select {}
}

// prepare makes a system from the kernel and two disks.
func prepare() error {
	for _, m := range [][3]string{{"proc", "/proc", "proc"}, {"sysfs", "/sys", "sysfs"}, {"devtmpfs", "/dev", "devtmpfs"}} {
		if err := mount(m[0], m[1], m[2], unix.MS_NOSUID, ""); err != nil {
			return err
		}
	}
	if err := console(); err != nil {
		return err
	}
	if err := load(Order); err != nil {
		return err
	}
	root, err := disk(RootDisk)
	if err != nil {
		return err
	}
	state, err := disk(StateDisk)
	if err != nil {
		return err
	}
	if err := userland(root); err != nil {
		return err
	}
	for _, m := range []struct {
		what, where, kind string
		flags             uintptr
		data              string
	}{
		{state, "/new" + State, "ext4", unix.MS_NOSUID | unix.MS_NODEV, ""},
		{"tmpfs", "/new/tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
		{"tmpfs", "/new/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"devpts", "/dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "gid=5,mode=620,ptmxmode=666"},
		{"tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
		{"mqueue", "/dev/mqueue", "mqueue", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	} {
		if err := mount(m.what, m.where, m.kind, m.flags, m.data); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		_ = os.MkdirAll("/new"+dir, 0o755) // the mount reports what is wrong
		if err := unix.Mount(dir, "/new"+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("cannot move %s: %w", dir, err)
		}
	}
	if err := os.Chdir("/new"); err != nil {
		return err
	}
	if err := unix.Mount("/new", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("cannot make the disk the root: %w", err)
	}
	if err := errors.Join(unix.Chroot("."), os.Chdir("/")); err != nil {
		return err
	}
	// Places lock their own memory and processes away; their mounts must not come
	// back here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return errors.Join(unix.Sethostname([]byte("litterbox")), delegate(), limits())
}

func mount(what, where, kind string, flags uintptr, data string) error {
	_ = os.MkdirAll(where, 0o755) // the mount reports what is wrong
	if err := unix.Mount(what, where, kind, flags, data); err != nil {
		return fmt.Errorf("cannot mount %s on %s: %w", what, where, err)
	}
	return nil
}

// console gives the process its standard files, which the kernel could not open
// before /dev was there.
func console() error {
	f, err := os.OpenFile("/dev/console", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup2(int(f.Fd()), fd); err != nil {
			return err
		}
	}
	return nil
}

// load loads the modules of a list. It names one that this kernel refuses and tries
// the rest: whatever needs it reports that later.
func load(list string) error {
	order, err := os.ReadFile(filepath.Join(Modules, list))
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(order)) {
		f, err := os.Open(filepath.Join(Modules, name))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			fmt.Printf("litterbox: the kernel does not take %s: %v\n", name, err)
		}
		f.Close()
	}
	return nil
}

// diskPatience is how long the kernel may take to find the disks.
const diskPatience = 30 * time.Second

// disk returns the device with a serial number.
func disk(serial string) (string, error) {
	for deadline := time.Now().Add(diskPatience); ; time.Sleep(10 * time.Millisecond) {
		found, err := filepath.Glob("/sys/block/vd*/serial")
		if err != nil {
			return "", err
		}
		for _, file := range found {
			if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == serial {
				return "/dev/" + filepath.Base(filepath.Dir(file)), nil
			}
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("there is no disk with the serial number %s", serial)
		}
	}
}

// delegate lets groups below the root have the controllers that limits need.
func delegate() error {
	have, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(have)) {
		// The limit that needs a refused one reports it.
		_ = os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+"+controller), 0)
	}
	return nil
}

// limits sets the limits of a server: places set their own below.
func limits() error {
	limit := unix.Rlimit{Cur: 1 << 19, Max: 1 << 20}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
}
