package branchtest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
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

// monitor answers git as a sandbox's does.
func monitor(changes, workspace string) {
	fmt.Print("token\x00")
	for _, path := range fsmonitor.List(fsmonitor.Place{Changes: []string{changes}, Workspace: workspace, Mounts: "/proc/self/mountinfo"}) {
		fmt.Print(path, "\x00")
	}
}
