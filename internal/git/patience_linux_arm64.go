package git

import "golang.org/x/sys/unix"

// older are calls whose names or numbers other processors do not have.
var older = map[uint64]where{unix.SYS_FSTATAT: {0, 1}}
