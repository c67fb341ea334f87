//go:build linux

package seccomp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Verdict is what happens to a call: a return value of seccomp(2).
type Verdict uint32

// The verdicts besides [Fail].
const (
	Allow Verdict = unix.SECCOMP_RET_ALLOW
	// Kill ends the whole process with SIGSYS.
	Kill Verdict = unix.SECCOMP_RET_KILL_PROCESS
	// Notify asks the holder of the filter's descriptor (kernel 5.0).
	Notify Verdict = unix.SECCOMP_RET_USER_NOTIF
	// Pretend makes the call return 0 without being made.
	Pretend Verdict = unix.SECCOMP_RET_ERRNO
)

// Fail returns the verdict that makes the call return errno without being made.
func Fail(errno unix.Errno) Verdict {
	return unix.SECCOMP_RET_ERRNO | Verdict(errno)&unix.SECCOMP_RET_DATA
}

// Errno returns the error of a [Fail] verdict, and 0 for every other.
func (v Verdict) Errno() unix.Errno {
	if v&unix.SECCOMP_RET_ACTION_FULL != unix.SECCOMP_RET_ERRNO {
		return 0
	}
	return unix.Errno(v & unix.SECCOMP_RET_DATA)
}

func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Kill:
		return "kill"
	case Notify:
		return "notify"
	case Pretend:
		return "pretend"
	}
	if errno := v.Errno(); errno != 0 {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprintf("%#x", uint32(v))
}

// Rule gives a verdict for calls whose arguments pass every test.
type Rule struct {
	Calls   []string
	When    []Test // all must hold; none means always
	Verdict Verdict
	// Nested rules are lifted by Options.Nested: they deny the calls that make
	// inner user namespaces.
	Nested bool
	// Inner rules only apply under Options.Nested.
	Inner bool
	// Asked rules are lifted by Options.Install, where [Watched] asks instead.
	Asked bool
	Why   string
}

// applies reports whether the rule is part of the variant.
func (r Rule) applies(opts Options) bool {
	return !(r.Nested && opts.Nested) && (!r.Inner || opts.Nested) && !(r.Asked && opts.Install)
}

// Test looks at one argument: its bits under Mask are (or with Not: are not)
// one of Values.
//
// The mask must name exactly the bits that the kernel looks at. Where its
// parameter is an int, the upper half of the register is ignored by the kernel
// and must be ignored here: snapd compared 64 bits of ioctl's request and was
// passed with a bit set above them (CVE-2019-7303).
type Test struct {
	Arg    int // 0 to 5
	Mask   uint64
	Values []uint64
	Not    bool
}

// Options choose between the variants of the policy.
type Options struct {
	// Nested allows inner user namespaces (security.nested).
	Nested bool
	// Shared is for places without namespaces of their own: it refuses what those
	// would keep apart.
	Shared bool
	// Install is for places where a package manager runs, as inner root without
	// any capability: calls that give files or the process to another user
	// succeed and change nothing.
	Install bool
}

// Policy decides what happens to every call. The first rule whose tests hold
// decides; a known call without such a rule is allowed.
type Policy struct {
	Rules []Rule
	// Unknown is for numbers without a name: calls of newer kernels, which have
	// not been reviewed here.
	Unknown Verdict
}

// Sandbox is the policy that [Install] installs.
func Sandbox(opts Options) Policy {
	policy := Policy{Unknown: Fail(unix.ENOSYS)}
	if opts.Shared {
		policy.Rules = shared() // before the others: the first one that holds decides
	}
	if opts.Install {
		policy.Rules = append(policy.Rules, pretended()...)
	}
	for _, rule := range table() {
		if rule.applies(opts) {
			policy.Rules = append(policy.Rules, rule)
		}
	}
	return policy
}
