//go:build unix

package git

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// statIdentity returns what tells a file from its successor besides size and
// time, and when anything about it last changed: ctime cannot be set.
func statIdentity(path string) (identity string, changed time.Time, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", time.Time{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	changed = time.Unix(st.Ctim.Unix())
	if modified := time.Unix(st.Mtim.Unix()); modified.After(changed) {
		changed = modified
	}
	return fmt.Sprintf("%d %d %d %d %d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()), changed, nil
}

func deviceOf(path string) (uint64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return uint64(info.Sys().(*syscall.Stat_t).Dev), nil
}

func ownerOf(path string) (int, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), nil
}
