package lock

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// By says, as the end of a sentence, which process holds a lock on the open
// file; empty if that cannot be known, as for another user's process. start is
// where the lock begins, -1 for one of the whole file.
//
// An open file description lock has no owner in the kernel's table of locks, so
// By looks at the descriptors (proc_pid_fdinfo(5)).
func By(file *os.File, start int64) string {
	wanted, err := file.Stat()
	if err != nil {
		return ""
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return ""
	}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join("/proc", process.Name())
		descriptors, err := os.ReadDir(filepath.Join(dir, "fd"))
		if err != nil {
			continue // another user's, or ended
		}
		for _, fd := range descriptors {
			open, err := os.Stat(filepath.Join(dir, "fd", fd.Name()))
			if err != nil || !os.SameFile(open, wanted) {
				continue
			}
			info, err := os.ReadFile(filepath.Join(dir, "fdinfo", fd.Name()))
			if err == nil && locked(info, start) {
				return fmt.Sprintf(": process %d (%s) holds it", pid, called(dir))
			}
		}
	}
	return ""
}

// locked reports whether a descriptor's fdinfo shows a lock that begins at start.
func locked(info []byte, start int64) bool {
	for line := range bytes.Lines(info) {
		// lock:	1: OFDLCK  ADVISORY  WRITE -1 08:01:1234 0 EOF
		fields := strings.Fields(string(line))
		if len(fields) != 9 || fields[0] != "lock:" {
			continue
		}
		if start < 0 && fields[2] == "FLOCK" || start >= 0 && fields[7] == strconv.FormatInt(start, 10) {
			return true
		}
	}
	return false
}

// called returns the program of a process and its first argument; later ones
// could hold a secret.
func called(dir string) string {
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	words := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
	if err != nil || words[0] == "" {
		return "of no name"
	}
	name := filepath.Base(words[0])
	if len(words) > 1 && !strings.HasPrefix(words[1], "-") && !strings.Contains(words[1], "=") {
		name += " " + words[1]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, name[:min(len(name), 60)])
}
