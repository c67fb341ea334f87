//go:build linux

package seccomp

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Offsets in struct seccomp_data. Both architectures are little-endian, so the
// low half of an argument comes first.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// skipped is the number that a tracer writes to make the kernel skip a call
// (ptrace(2)); the filter still sees it. It must be allowed, or `strace
// --inject` and proot lose the result they wrote; libseccomp exempts it too.
// As a number it names no call.
const skipped = math.MaxUint32

// span is the treatment of all numbers from one up to the next span's.
type span struct {
	from  uint32
	rules []Rule  // tried in order
	last  Verdict // when none of them holds
}

// Compile turns a policy into a program for one architecture. Calls that the
// architecture does not have are skipped; a name that none has is an error.
//
// The program checks the architecture first: a filter that gives foreign calls
// its default verdict lets `int 0x80` through. Then it bisects on the number,
// looking at nothing else, so that the kernel can remember which numbers are
// always allowed (its bitmap since 5.11 emulates the filter up to the first
// look at an argument).
func Compile(arch Arch, policy Policy) ([]unix.SockFilter, error) {
	if err := check(policy.Rules); err != nil {
		return nil, err
	}
	body, err := search(spans(arch, policy))
	if err != nil {
		return nil, err
	}
	program := append([]unix.SockFilter{
		load(offsetArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch.Audit, Jt: 1},
		finish(Kill),
		load(offsetNumber),
	}, body...)
	if len(program) > unix.BPF_MAXINSNS {
		return nil, fault.New(fault.Internal, "cannot compile the system call policy: %d instructions are more than %d", len(program), unix.BPF_MAXINSNS)
	}
	return program, nil
}

// check refuses rules that would not mean what they seem to.
func check(rules []Rule) error {
	known := map[string]bool{}
	for _, arch := range []Arch{AMD64(), ARM64()} {
		for _, name := range arch.Calls {
			known[name] = true
		}
	}
	delete(known, "")
	for _, rule := range rules {
		for _, name := range rule.Calls {
			if !known[name] {
				return fault.New(fault.Internal, "cannot compile the system call policy: no architecture has a call %q", name)
			}
		}
		for _, test := range rule.When {
			outside := slices.ContainsFunc(test.Values, func(v uint64) bool { return v&^test.Mask != 0 })
			if test.Arg < 0 || test.Arg > 5 || test.Mask == 0 || len(test.Values) == 0 || outside {
				return fault.New(fault.Internal, "cannot compile the system call policy: impossible test %+v of %q", test, rule.Calls)
			}
		}
	}
	return nil
}

// spans cuts all 2^32 numbers into runs that are treated alike.
func spans(arch Arch, policy Policy) []span {
	byName := map[string][]Rule{}
	for _, rule := range policy.Rules {
		for _, name := range rule.Calls {
			byName[name] = append(byName[name], rule)
		}
	}
	unknown := policy.Unknown
	var all []span
	add := func(next span) {
		if len(all) > 0 {
			before := all[len(all)-1]
			if len(before.rules) == 0 && len(next.rules) == 0 && before.last == next.last {
				return
			}
		}
		all = append(all, next)
	}
	for number, name := range arch.Calls {
		next := span{from: uint32(number), last: unknown}
		if name != "" {
			next.rules, next.last = decide(byName[name])
		}
		add(next)
	}
	add(span{from: uint32(len(arch.Calls)), last: unknown})
	if bit := uint64(arch.Alien); bit != 0 {
		for from := bit; from < 1<<32; from += 2 * bit {
			add(span{from: uint32(from), last: Kill})
			if end := from + bit; end < 1<<32 {
				add(span{from: uint32(end), last: unknown})
			}
		}
	}
	add(span{from: skipped, last: Allow})
	return all
}

// decide cuts the rules of one call after the first that always holds.
func decide(rules []Rule) ([]Rule, Verdict) {
	for i, rule := range rules {
		if len(rule.When) == 0 {
			return rules[:i], rule.Verdict
		}
	}
	return rules, Allow
}
