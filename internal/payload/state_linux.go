package payload

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// stateOf returns what the kernel changes with every change of a file's content,
// mode, owner or names, and when it last did: the time of the inode, which no
// call sets (inode(7)).
func stateOf(info os.FileInfo) (state string, changed time.Time) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}
	}
	changed = time.Unix(st.Ctim.Unix())
	return fmt.Sprintf("%d %d %d %d", st.Dev, st.Ino, st.Size, changed.UnixNano()), changed
}
