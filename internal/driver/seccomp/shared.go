//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// shared is what is also refused when a place shares the host's network,
// process table, file system and IPC, with only Landlock in between. Landlock
// judges opening files, tracing, TCP and (since version 6) signals; it does not
// judge sockets by path, UDP, the older kinds of IPC, or actions on another
// process or file of the same user that need no opening.
func shared() []Rule {
	return []Rule{
		{
			Calls: []string{"socket"}, Verdict: Fail(unix.EAFNOSUPPORT),
			Why: "the network is the host's, and so are the sockets that lie in its directories",
		},
		{
			// A datagram socket of a pair can still send to any other by its
			// path or name; SOCK_STREAM refuses that and SOCK_SEQPACKET ignores
			// it (unix(7)).
			Calls: []string{"socketpair"}, Verdict: Fail(unix.EPROTONOSUPPORT),
			When: []Test{not(1, 0xf, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)},
			Why:  "as socket",
		},
		{
			Calls: []string{"connect", "bind"}, Verdict: Fail(unix.EACCES),
			Why: "there is nothing that could be connected",
		},
		{
			Calls: []string{
				"shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
				"mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
			},
			Verdict: Fail(unix.ENOSYS),
			Why:     "names and numbers of these are the host's; a kernel without them says ENOSYS",
		},
		{
			Calls: []string{"prlimit64"}, When: []Test{not(0, asInt, 0)}, Verdict: Fail(unix.EPERM),
			Why: "the limits of every other process of the user could be set",
		},
		{
			Calls: []string{"setpriority"}, When: []Test{not(0, asInt, unix.PRIO_PROCESS)}, Verdict: Fail(unix.EPERM),
			Why: "a group or a user is more than the place",
		},
		{
			Calls: []string{"setpriority"}, When: []Test{not(1, asInt, 0)}, Verdict: Fail(unix.EPERM),
			Why: "every process of the user could be slowed down",
		},
		{
			Calls: []string{"ioprio_set"}, When: []Test{not(0, asInt, ioprioProcess)}, Verdict: Fail(unix.EPERM),
			Why: "as setpriority",
		},
		{
			Calls: []string{"ioprio_set"}, When: []Test{not(1, asInt, 0)}, Verdict: Fail(unix.EPERM),
			Why: "as setpriority",
		},
		{
			Calls: []string{"kill"}, When: []Test{is(0, asInt, 0xffffffff)}, Verdict: Fail(unix.EPERM),
			Why: "-1 is every process of the user; older Landlocks let the signal through",
		},
		{
			Calls: []string{"chown", "lchown", "fchown", "fchownat"}, Verdict: Fail(unix.EPERM),
			Why: "Landlock does not judge it, and what an ordinary user may give away is a group",
		},
		{
			Calls: []string{
				"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
			},
			Verdict: Fail(unix.EOPNOTSUPP),
			Why:     "Landlock does not judge them; many file systems say so too",
		},
		{
			Calls: []string{"utime", "utimes", "futimesat"}, Verdict: Fail(unix.ENOSYS),
			Why: "utimensat, which is asked about, can do all that they can",
		},
	}
}

// Attributes is the policy of [InstallAttributes].
func Attributes() Policy {
	return Policy{Unknown: Allow, Rules: append(scheduling(), Rule{
		Calls: []string{"chmod", "fchmod", "fchmodat", "fchmodat2", "utimensat"}, Verdict: Notify,
		Why: "Landlock does not judge them, and builds cannot do without them: they are carried out for files of the place alone",
	})}
}
