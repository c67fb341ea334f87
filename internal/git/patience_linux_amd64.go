package git

import "golang.org/x/sys/unix"

// older are calls of this processor that newer ones replace, and that some C
// libraries make.
var older = map[uint64]where{
	unix.SYS_NEWFSTATAT: {0, 1},
	unix.SYS_OPEN:       {-1, 0},
	unix.SYS_STAT:       {-1, 0},
	unix.SYS_LSTAT:      {-1, 0},
	unix.SYS_ACCESS:     {-1, 0},
	unix.SYS_READLINK:   {-1, 0},
}
