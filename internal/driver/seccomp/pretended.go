//go:build linux

package seccomp

// pretended are calls that a package manager makes as root and that one id alone
// cannot do. A place for it has a single id, inner root, to which every file
// belongs: its owner cannot be changed, and is not checked afterwards. A program
// that asks for its id after that is told root (a plain limit of such places: a
// program that insists on another user does not work).
func pretended() []Rule {
	return []Rule{
		{
			Calls: []string{"chown", "lchown", "fchown", "fchownat"}, Verdict: Pretend,
			Why: "there is one id to own files; the call would fail with EINVAL",
		},
		{
			Calls:   []string{"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups"},
			Verdict: Pretend,
			Why:     "there is one id to run as, which has no capability; maintainer scripts drop rights that they do not have",
		},
	}
}
