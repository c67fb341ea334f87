package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// signals sends every signal to a process, 1 to 64.
func signals(args []string) (any, error) {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, err
	}
	if pid == 1 && holdsMachine() {
		return nil, errMachine
	}
	result := outcomes{}
	for n := 1; n <= 64; n++ {
		result[strconv.Itoa(n)] = named(unix.Kill(pid, unix.Signal(n)))
		// As a fault and as a timer would deliver it; the Go runtime takes
		// these for its own faults.
		info := siginfo{Signo: int32(n), Code: -1} // SI_QUEUE
		_, _, errno := unix.RawSyscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(n), uintptr(unsafe.Pointer(&info)))
		result["queued "+strconv.Itoa(n)] = named(errno)
	}
	return result, nil
}

// siginfo is siginfo_t of 64-bit Linux.
type siginfo struct {
	Signo, Errno, Code, _ int32
	_                     [112]byte
}

// process tries to look into another process and to take it over.
func process(args []string) (any, error) {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, err
	}
	if pid == 1 && holdsMachine() {
		return nil, errMachine
	}
	runtime.LockOSThread() // the tracer is one thread
	result := outcomes{
		"seize":  named(unix.PtraceSeize(pid)),
		"attach": attached(pid),
		"read":   readMemory(pid),
	}
	proc := filepath.Join("/proc", args[0])
	for _, name := range []string{"environ", "mem", "maps", "auxv", "stack", "syscall", "io"} {
		result[name] = readable(filepath.Join(proc, name))
	}
	for _, name := range []string{"root", "cwd", "exe"} {
		_, err := os.Readlink(filepath.Join(proc, name))
		result[name] = named(err)
	}
	_, err = os.ReadDir(filepath.Join(proc, "fd"))
	result["fd"] = named(err)
	_, err = os.ReadDir(filepath.Join(proc, "root/etc"))
	result["root/etc"] = named(err)
	for _, name := range []string{"mem", "oom_score_adj", "coredump_filter", "clear_refs"} {
		result["write "+name] = writable(filepath.Join(proc, name))
	}
	return result, nil
}

func attached(pid int) string {
	err := unix.PtraceAttach(pid)
	if err == nil {
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err == nil {
			_ = unix.PtraceDetach(pid)
		}
	}
	return named(err)
}

// readMemory reads where every such program begins.
func readMemory(pid int) string {
	var got [16]byte
	local := []unix.Iovec{{Base: &got[0], Len: uint64(len(got))}}
	remote := []unix.RemoteIovec{{Base: 0x400000, Len: len(got)}}
	_, err := unix.ProcessVMReadv(pid, local, remote, 0)
	return named(err)
}

func readable(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return named(err)
	}
	defer file.Close()
	if _, err = file.ReadAt(make([]byte, 1), 0x400000); filepath.Base(path) != "mem" {
		_, err = file.Read(make([]byte, 1))
	}
	return named(err)
}

func writable(path string) string {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return named(err)
	}
	return named(file.Close())
}

// descriptors lists what is open here, and where it leads.
func descriptors([]string) (any, error) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	open := map[string]string{}
	for _, name := range names {
		if name == strconv.Itoa(int(dir.Fd())) {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + name)
		if err != nil {
			return nil, fmt.Errorf("cannot look at descriptor %s: %w", name, err)
		}
		if strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/sys/fs/cgroup/") {
			continue // the Go runtime's own: its poller, and the limits it adapts to
		}
		open[name] = target
	}
	return open, nil
}
