package namespace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// probeLocks takes both kinds of locks that litterbox's records use. NFS
// without a lock manager has neither.
func probeLocks(stateDir string) Finding {
	found := Finding{Name: "locks", Needed: true, OK: true, Found: "files of the state directory can be locked"}
	file, err := os.CreateTemp(stateDir, ".lock-trial-*")
	if err == nil {
		defer os.Remove(file.Name())
		defer file.Close()
		err = errors.Join(
			unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB),
			unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 1}))
	}
	if err != nil {
		found.OK, found.Found = false, "files of the state directory cannot be locked: "+err.Error()
		found.Mend = "export XDG_STATE_HOME=/a/directory/on/a/local/disk"
	}
	return found
}

// Below these a sandbox of a small repository does not fit.
const (
	roomInodes = 1000
	roomBytes  = 64 << 20
)

// probeRoom checks how much can still be written below the state directory.
func probeRoom(stateDir string) Finding {
	found := Finding{Name: "room", OK: true, Found: "there is room in the state directory"}
	var fs unix.Statfs_t
	if err := unix.Statfs(stateDir, &fs); err != nil {
		return found // if it cannot be told now, it shows once the disk is full
	}
	// No blocks or files at all: a file system that does not count them.
	switch free := int64(fs.Bavail) * fs.Bsize; {
	case fs.Files > 0 && fs.Ffree < roomInodes:
		found.OK, found.Found = false, fmt.Sprintf("%d files can still be made in the state directory (inodes)", fs.Ffree)
		found.Mend = "df -i " + stateDir + "; make room there, or export XDG_STATE_HOME=/a/directory/with/more/room"
	case fs.Blocks > 0 && free < roomBytes:
		found.OK, found.Found = false, fmt.Sprintf("%d MiB can still be written in the state directory", free>>20)
		found.Mend = "df -h " + stateDir + "; make room there, or export XDG_STATE_HOME=/a/directory/with/more/room"
	}
	return found
}

// probeExec runs a program below the state directory, where HOME and /tmp of
// the sandboxes are, and a workspace that is a copy.
func probeExec(stateDir string) Finding {
	found := Finding{Name: "programs", OK: true, Found: "programs can be run from the state directory"}
	file, err := os.CreateTemp(stateDir, ".program-trial-*")
	if err != nil {
		found.OK, found.Found, found.Mend = false, err.Error(), "export XDG_STATE_HOME=/a/writable/directory"
		return found
	}
	name := file.Name()
	defer os.Remove(name)
	_, err = file.WriteString("#!/bin/sh\nexit 0\n")
	if err == nil {
		err = file.Chmod(0o700)
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = exec.Command(filepath.Clean(name)).Run()
	}
	if err != nil {
		found.OK, found.Found = false, "programs in HOME and /tmp of a sandbox, and in a workspace that is a copy, cannot be run (mounted noexec?): "+err.Error()
		found.Mend = "export XDG_STATE_HOME=/a/directory/where/programs/run"
	}
	return found
}
