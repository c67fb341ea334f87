package probe

// Denied returns the answer of each attempt of the verb calls in a sandbox, by
// the kind of call that it tries.
func Denied() map[string]map[string]string {
	denied := map[string]map[string]string{}
	for _, row := range []struct {
		kind, answer string
		calls        []string
	}{
		{Namespaces, "EPERM", []string{
			"unshare bad flag", "clone newuser fs", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount",
			"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "sethostname",
		}},
		{Namespaces, "ENOSYS", []string{"clone3"}},
		{Subsystems, "EPERM", []string{
			"io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "perf_event_open", "userfaultfd", "kcmp", "pidfd_getfd",
			"fanotify_init", "syslog", "personality",
		}},
		{Subsystems, "ENOSYS", []string{"keyctl", "add_key", "request_key", "openat2"}},
		{Sockets, "EPERM", []string{"socket raw", "socket raw 6"}},
		{Sockets, "EAFNOSUPPORT", []string{"socket packet", "socket unknown type", "socketpair packet"}},
		{Sockets, "EPROTONOSUPPORT", []string{"socket netlink"}},
		{Rights, "EPERM", []string{"chmod setuid", "chmod setgid", "open setuid", "mknod device"}},
		{Terminals, "EPERM", []string{"tiocsti", "tiocsti high", "tioclinux", "tiocsetd"}},
		{Inodes, "EINVAL", []string{"lease", "lease high", "delegation", "dnotify", "write hint", "rename whiteout"}},
		{Inodes, "ENOTTY", []string{"flags", "flags high", "dedupe"}},
		{Inodes, "ENOTSUP", []string{"file_setattr"}},
	} {
		if denied[row.kind] == nil {
			denied[row.kind] = map[string]string{}
		}
		for _, call := range row.calls {
			denied[row.kind][call] = row.answer
		}
	}
	return denied
}

// The kinds of system calls that a sandbox denies.
const (
	Namespaces = "namespaces and mounts"
	Subsystems = "young and powerful subsystems"
	Sockets    = "raw and foreign sockets"
	Rights     = "rights and devices in files"
	Terminals  = "commands of terminals"
	Inodes     = "inodes without writing"
)
