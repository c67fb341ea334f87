package probe

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// errMachine is the answer of verbs that would change the machine if its root
// ran them outside any sandbox.
var errMachine = errors.New("run by the machine's root: use bare")

// holdsMachine reports whether capabilities here count for the whole machine: in
// the first user namespace all ids are mapped (user_namespaces(7)).
func holdsMachine() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	return os.Geteuid() == 0 && (err != nil || strings.Contains(string(data), "4294967295"))
}

// bare runs the probe again in namespaces of its own, as their root: what an
// ordinary user of this kernel can reach without a sandbox.
func bare(args []string) (any, error) {
	return nil, inNamespaces(&exec.Cmd{Path: "/proc/self/exe", Args: append([]string{Name}, args...)})
}

func bareShell(args []string) (any, error) {
	return nil, inNamespaces(exec.Command("/bin/sh", "-c", args[0]))
}

func inNamespaces(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS |
			unix.CLONE_NEWIPC | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	return cmd.Run()
}

// namespaces starts processes in new namespaces, by clone and by unshare.
func namespaces([]string) (any, error) {
	result := outcomes{}
	for name, flag := range map[string]uintptr{
		"user": unix.CLONE_NEWUSER, "user and mount": unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		"user and net": unix.CLONE_NEWUSER | unix.CLONE_NEWNET, "user and pid": unix.CLONE_NEWUSER | unix.CLONE_NEWPID,
	} {
		result["clone "+name] = started(&syscall.SysProcAttr{Cloneflags: flag})
		result["unshare "+name] = started(&syscall.SysProcAttr{Unshareflags: flag})
	}
	return result, nil
}

func started(attr *syscall.SysProcAttr) string {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return named(err)
	}
	defer null.Close()
	process, err := os.StartProcess("/proc/self/exe", []string{Name, "descriptors"},
		&os.ProcAttr{Files: []*os.File{null, null, null}, Sys: attr})
	if err != nil {
		return named(err)
	}
	_, err = process.Wait()
	return named(err)
}
