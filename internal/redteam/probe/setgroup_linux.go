package probe

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setgroup DIRECTORY: every way to the set-group-ID bit, for a directory, for a
// file, and for a file that was a directory when it was checked.
func setgroup(args []string) (any, error) {
	in := func(name string) string { return filepath.Join(args[0], name) }
	for _, name := range []string{"directory", "swapped"} {
		if err := os.Mkdir(in(name), 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"file", "swap"} {
		if err := os.WriteFile(in(name), nil, 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink("file", in("link")); err != nil {
		return nil, err
	}
	opened := map[string]uintptr{}
	for _, name := range []string{"directory", "file"} {
		fd, err := unix.Open(in(name), unix.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		opened[name] = uintptr(fd)
	}
	const mode = 0o2755
	at := ^uintptr(-unix.AT_FDCWD - 1)
	result := outcomes{}
	for name, fd := range opened {
		result[name+" fchmod"] = call(unix.SYS_FCHMOD, fd, mode)
		result[name+" fchmodat"] = call(unix.SYS_FCHMODAT, at, text(in(name)), mode)
		result[name+" fchmodat2"] = call(unix.SYS_FCHMODAT2, at, text(in(name)), mode, 0)
		result[name+" fchmodat2 no link"] = call(unix.SYS_FCHMODAT2, at, text(in(name)), mode, unix.AT_SYMLINK_NOFOLLOW)
		result[name+" fchmodat2 empty"] = call(unix.SYS_FCHMODAT2, fd, text(""), mode, unix.AT_EMPTY_PATH)
	}
	result["file link"] = call(unix.SYS_FCHMODAT, at, text(in("link")), mode)
	result["file high"] = call(unix.SYS_FCHMOD, opened["file"], 1<<32|mode)
	result["file both"] = call(unix.SYS_FCHMOD, opened["file"], 0o6755)
	result["file openat"] = call(unix.SYS_OPENAT, at, text(in("made")), unix.O_CREAT|unix.O_WRONLY, mode)
	result["file openat in it"] = call(unix.SYS_OPENAT, at, text(in("directory/made")), unix.O_CREAT|unix.O_WRONLY, mode)
	result["file mknodat"] = call(unix.SYS_MKNODAT, at, text(in("directory/node")), unix.S_IFREG|mode, 0)
	race(in, opened)
	return result, nil
}

// race changes what a call means while a supervisor may be checking it: the
// names in the directory, the path in memory, the open file behind a number.
func race(in func(string) string, opened map[string]uintptr) {
	const mode, rounds, spare = 0o2755, 300, 200
	at := ^uintptr(-unix.AT_FDCWD - 1)
	path := []byte(in("swapped") + "\x00")
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !ended.Load(); i++ {
			_ = unix.Renameat2(unix.AT_FDCWD, in("swapped"), unix.AT_FDCWD, in("swap"), unix.RENAME_EXCHANGE)
			_ = unix.Dup3(int(opened[[]string{"directory", "file"}[i%2]]), spare, 0)
			runtime.Gosched()
		}
	}()
	for range rounds {
		call(unix.SYS_FCHMODAT, at, uintptr(unsafe.Pointer(&path[0])), mode)
		call(unix.SYS_FCHMOD, spare, mode)
		call(unix.SYS_FCHMODAT2, spare, text(""), mode, unix.AT_EMPTY_PATH)
	}
	ended.Store(true)
	<-done
	runtime.KeepAlive(path)
}
