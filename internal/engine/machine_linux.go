package engine

import "golang.org/x/sys/unix"

// machineMemory is the machine's memory in bytes; 0 when it does not tell.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return roundedSize(int64(info.Totalram) * int64(info.Unit))
}

// freeSpace is the number of bytes that an ordinary user can still write below
// dir; 0 when the file system does not tell.
func freeSpace(dir string) int64 {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return 0
	}
	return roundedSize(int64(fs.Bavail) * fs.Bsize)
}

// noexec reports whether no program below dir can be run (mount(2), MS_NOEXEC).
func noexec(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0
}

// roundedSize drops digits that no one needs, and keeps an even number.
func roundedSize(n int64) int64 {
	const unit = 128 << 20
	if n < unit {
		return n
	}
	return n / unit * unit
}
