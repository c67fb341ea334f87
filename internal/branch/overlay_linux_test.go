package branch_test

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func mountOverlay(target, options string) error {
	return unix.Mount("overlay", target, "overlay", 0, options)
}

func isolate(cmd *exec.Cmd, uid, gid syscall.SysProcIDMap) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{uid}, GidMappings: []syscall.SysProcIDMap{gid},
	}
}
