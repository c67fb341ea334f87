package confine

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// awaitOrders says when the warden shall end the place: at SIGTERM. Whatever
// else could end it is ignored.
func awaitOrders() (<-chan os.Signal, error) {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTTIN, unix.SIGTTOU, unix.SIGTSTP)
	order := make(chan os.Signal, 1)
	signal.Notify(order, unix.SIGTERM)
	return order, nil
}

// start makes a child that ends when this thread does, which lives as long as
// the process.
func start(verb string, descriptors []uintptr) (int, error) {
	return syscall.ForkExec("/proc/self/exe", []string{"litterbox-guest", verb}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: descriptors, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	})
}

// sweep ends and collects every child and grandchild, until there is none. One
// that is just being made is found at the next look: its parent is dead, and it
// is our child.
func sweep() {
	for {
		for _, pid := range below(os.Getpid()) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.ECHILD {
				return
			}
			if pid <= 0 && err != unix.EINTR {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// below lists the descendants of a process (proc_tid_children(5)).
func below(pid int) []int {
	var all []int
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		return nil
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(append(all, child), below(child)...)
			}
		}
	}
	return all
}

// execveat replaces this process by the program behind fd.
func execveat(fd int, argv, env []string) error {
	arguments, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	environment, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	empty, err := unix.BytePtrFromString("")
	if err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&environment[0])), unix.AT_EMPTY_PATH, 0)
	runtime.KeepAlive(arguments)
	runtime.KeepAlive(environment)
	return errno
}
