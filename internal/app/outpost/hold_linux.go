package outpost

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// restful is how long nothing else may run beside the holder before it ends.
const restful = 10 * time.Minute

// hold is the first process of a machine whose processes end with it, like a
// container: it waits for those that lost their parents, and ends when told to, or
// when nothing else has run for a while. That loses nothing in the machine, which
// starts again on demand.
func hold() int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGCHLD, unix.SIGTERM, unix.SIGINT)
	alone := time.Now()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 && err != unix.EINTR {
				break
			}
		}
		select {
		case got := <-signals:
			if got == syscall.SIGTERM || got == syscall.SIGINT {
				return 0
			}
		case <-tick.C:
			if others() {
				alone = time.Now()
			} else if time.Since(alone) >= restful {
				return 0
			}
		}
	}
}

// others reports whether another process runs here. An unreadable entry counts as one.
func others() bool {
	entries, err := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(filepath.Base(entry)); err != nil || pid != os.Getpid() {
			return true
		}
	}
	return err != nil || len(entries) == 0
}
