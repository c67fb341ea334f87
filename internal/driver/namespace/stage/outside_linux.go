package stage

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Outside is real root's part of a sandbox, done by the keeper: it assembles
// the root file system in a mount namespace of one thread, so that no process
// is needed for it. begin starts the process that will enter, as soon as the
// root can be its working directory; while the rest is mounted, that process
// sets up its network. Its user namespace also serves to shift the layers' ids.
//
// The process may go on when Outside has returned nil.
func Outside(config Config, begin func() (pid int, err error)) error {
	return onThread(func() error {
		// With CLONE_NEWNS the thread also gets its own working directory and umask
		// (unshare(2)).
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("cannot leave the mount namespace: %w", err)
		}
		a := newAssembly(config)
		if err := a.found(); err != nil {
			return err
		}
		if err := os.Chdir(config.Root); err != nil {
			return fmt.Errorf("cannot change to the new root: %w", err)
		}
		a.owners = ownersOf(config) // beside the process that will enter
		defer a.owners.close()
		pid, err := begin()
		if err != nil {
			return err
		}
		if a.users, err = os.Open(fmt.Sprintf("/proc/%d/ns/user", pid)); err != nil {
			return fmt.Errorf("cannot find the user namespace: %w", err)
		}
		defer a.users.Close()
		return a.fill()
	})
}

// onThread runs f on a thread that ends afterwards, and with it all changes
// that f made to it.
func onThread(f func() error) error {
	done := make(chan error, 1)
	var try func()
	try = func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			done <- f()
			return // still locked: the runtime ends the thread
		}
		// The main thread cannot end before the process does. It is held here until
		// another thread has done the work.
		defer runtime.UnlockOSThread()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			try()
		}()
		<-ended
	}
	go try()
	return <-done
}
