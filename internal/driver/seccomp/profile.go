//go:build linux

package seccomp

import (
	"encoding/json"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// profile is a system call filter as container engines take it (the OCI's
// runtime specification, and Docker's names for architectures).
type profile struct {
	Default      string    `json:"defaultAction"`
	DefaultErrno uint      `json:"defaultErrnoRet"`
	Archs        []archMap `json:"archMap"`
	Calls        []verdict `json:"syscalls"`
}

type archMap struct {
	Arch string   `json:"architecture"`
	Subs []string `json:"subArchitectures"`
}

type verdict struct {
	Names  []string `json:"names"`
	Action string   `json:"action"`
	Errno  uint     `json:"errnoRet,omitempty"`
}

// Profile is the filter of a container in which places are made: the calls that
// make inner user namespaces are allowed, those that no place may use are not, and
// a call without a name yet does not exist. Rules about arguments stay with the
// places, each of which has its own filter above this one.
func Profile() ([]byte, error) {
	p := profile{
		Default: "SCMP_ACT_ERRNO", DefaultErrno: uint(unix.ENOSYS),
		Archs: []archMap{{Arch: "SCMP_ARCH_X86_64", Subs: []string{}}, {Arch: "SCMP_ARCH_AARCH64", Subs: []string{}}},
	}
	denied := map[string]Verdict{}
	for _, rule := range Sandbox(Options{Nested: true}).Rules {
		for _, name := range rule.Calls {
			if _, known := denied[name]; !known && len(rule.When) == 0 {
				denied[name] = rule.Verdict
			}
		}
	}
	byErrno := map[uint][]string{}
	for _, name := range slices.Concat(AMD64().Calls, ARM64().Calls) {
		if name != "" {
			byErrno[uint(denied[name].Errno())] = append(byErrno[uint(denied[name].Errno())], name)
		}
	}
	for _, errno := range []uint{0, uint(unix.EPERM), uint(unix.ENOSYS), uint(unix.EOPNOTSUPP)} {
		names := byErrno[errno]
		slices.Sort(names)
		one := verdict{Names: slices.Compact(names), Action: "SCMP_ACT_ERRNO", Errno: errno}
		if errno == 0 {
			one.Action = "SCMP_ACT_ALLOW"
		}
		if len(names) > 0 {
			p.Calls = append(p.Calls, one)
		}
		delete(byErrno, errno)
	}
	if len(byErrno) > 0 {
		return nil, fault.New(fault.Internal, "cannot write the profile: a rule of the policy has an error that the profile does not know")
	}
	return json.MarshalIndent(p, "", "\t")
}
