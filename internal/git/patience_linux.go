package git

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// where is the argument of a system call that says which file it is about.
type where struct {
	descriptor, path int // -1: none
}

// onFiles are the system calls in which git waits for a file that it opens, reads or
// looks at. Locks do not count (git takes none that wait), nor do writes: those wait
// for a reader.
var onFiles = map[uint64]where{
	unix.SYS_OPENAT:     {0, 1},
	unix.SYS_STATX:      {0, 1},
	unix.SYS_FACCESSAT:  {0, 1},
	unix.SYS_READLINKAT: {0, 1},
	unix.SYS_READ:       {0, -1},
	unix.SYS_READV:      {0, -1},
	unix.SYS_PREAD64:    {0, -1},
	unix.SYS_FSTAT:      {0, -1},
	unix.SYS_GETDENTS64: {0, -1},
}

// waitsFor lists what a process and those that it has started wait for. What cannot
// be seen is left out: a kernel that lets nobody trace a child (kernel.yama.ptrace_scope
// above 1) hides which system call it is in.
func waitsFor(pid int) (all []wait) {
	for pids := []int{pid}; len(pids) > 0; pids = pids[1:] {
		at := "/proc/" + strconv.Itoa(pids[0])
		// Another program may have good reason: an editor, ssh that asks its user.
		if name, err := os.ReadFile(at + "/comm"); err == nil && strings.HasPrefix(string(name), "git") {
			all = append(all, sleeping(pids[0], at)...)
		}
		pids = append(pids, process.Children(pids[0])...)
	}
	return all
}

// sleeping lists the threads of a process that sleep in a call on a file.
func sleeping(pid int, at string) (all []wait) {
	threads, err := os.ReadDir(at + "/task")
	if err != nil {
		return nil // it has just ended
	}
	for _, one := range threads {
		dir := filepath.Join(at, "task", one.Name())
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		now, ok := process.ParseStat(stat)
		call, err := os.ReadFile(dir + "/syscall")
		if !ok || err != nil || now.State != 'S' && now.State != 'D' {
			continue
		}
		file := fileOf(dir, string(call))
		if file == "" {
			continue
		}
		thread, _ := strconv.Atoi(one.Name())
		moved, _ := os.ReadFile(dir + "/io") // without it, time and call alone count
		all = append(all, wait{pid: pid, thread: thread, call: string(call), time: now.CPU, bytes: string(moved), file: file})
	}
	return all
}

// fileOf returns the path of the file that a system call is about, as in
// proc_pid_syscall(5): its number, its arguments, and two registers.
func fileOf(dir, call string) string {
	var words []uint64
	for word := range strings.FieldsSeq(call) {
		n, err := strconv.ParseUint(word, 0, 64)
		if err != nil {
			return "" // it runs, or is in no system call
		}
		words = append(words, n)
	}
	if len(words) < 7 {
		return ""
	}
	arguments := words[1:7]
	is, ok := onFiles[words[0]]
	if !ok {
		if is, ok = older[words[0]]; !ok {
			return ""
		}
	}
	path := ""
	if is.path >= 0 {
		if path = text(dir, arguments[is.path]); path == "" {
			return ""
		}
	}
	if !filepath.IsAbs(path) {
		base := dir + "/cwd"
		if is.descriptor >= 0 && int32(arguments[is.descriptor]) != unix.AT_FDCWD {
			base = dir + "/fd/" + strconv.Itoa(int(int32(arguments[is.descriptor])))
		}
		to, err := os.Readlink(base)
		if err != nil {
			return ""
		}
		path = filepath.Join(to, path)
	}
	if !filepath.IsAbs(path) || strings.HasPrefix(path, "/dev/") {
		return "" // a pipe or a socket without a name; a terminal
	}
	return path
}

// text reads a string of a process.
func text(dir string, address uint64) string {
	memory, err := os.Open(dir + "/mem")
	if err != nil {
		return ""
	}
	defer memory.Close()
	b := make([]byte, unix.PathMax)
	n, _ := memory.ReadAt(b, int64(address)) // up to the end of what is mapped
	if end := bytes.IndexByte(b[:n], 0); end >= 0 {
		return string(b[:end])
	}
	return ""
}
