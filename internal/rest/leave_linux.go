package rest

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// leave gives back the pages of files that this process has mapped and not changed, most
// of all its program: a process at rest runs none of it, and the kernel's cache still has
// it for the moment it wakes. A page that differs from the file exists only here, as
// relocated data does: a mapping that has one is left alone (Anonymous in
// /proc/pid/smaps, and Swap where it was moved out, proc_pid_smaps(5)).
func leave() {
	// Errors mean that pages stay, which is how it was before.
	content, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, one := range unchanged(content) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, one.from, one.to-one.from, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unchanged lists the private mappings of files that cannot be written and that are as
// in their files.
func unchanged(smaps []byte) (found []mapping) {
	var now mapping
	ours := false
	end := func() {
		if ours {
			found = append(found, now)
		}
		ours = false
	}
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		if name, isField := strings.CutSuffix(fields[0], ":"); isField {
			if (name == "Anonymous" || name == "Swap") && fields[1] != "0" {
				ours = false
			}
			continue
		}
		end()
		// from-to perms offset device inode path
		from, to, ok := strings.Cut(fields[0], "-")
		first, err1 := strconv.ParseUint(from, 16, 64)
		last, err2 := strconv.ParseUint(to, 16, 64)
		ours = ok && err1 == nil && err2 == nil && first < last && len(fields) > 5 && fields[4] != "0" &&
			(fields[1] == "r-xp" || fields[1] == "r--p")
		now = mapping{uintptr(first), uintptr(last)}
	}
	end()
	if lines.Err() != nil {
		return nil
	}
	return found
}
