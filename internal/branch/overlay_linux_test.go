package branch_test

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func mountOverlay(target, options string) error {
	return unix.Mount("overlay", target, "overlay", 0, options)
}

// isolate runs cmd as root of a user namespace that knows only this user.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}
