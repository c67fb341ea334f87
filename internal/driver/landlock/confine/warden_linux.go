package confine

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// awaitOrders signals when the warden should end the place: at SIGTERM. All
// other signals that could end it are ignored.
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
// that is just being made is found in the next pass: its parent is dead, and it
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

// below lists the descendants of a process.
func below(pid int) []int {
	var all []int
	for _, child := range process.Children(pid) {
		all = append(append(all, child), below(child)...)
	}
	return all
}
