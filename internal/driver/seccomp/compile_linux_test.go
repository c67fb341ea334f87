package seccomp_test

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func arches() []seccomp.Arch { return []seccomp.Arch{seccomp.AMD64(), seccomp.ARM64()} }

// machine runs a compiled filter. It is an implementation of classic BPF that
// is neither the kernel's nor ours.
type machine struct{ vm *bpf.VM }

func newMachine(t testing.TB, program []unix.SockFilter) machine {
	t.Helper()
	var instructions []bpf.Instruction
	for _, f := range program {
		instructions = append(instructions, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}.Disassemble())
	}
	vm, err := bpf.NewVM(instructions)
	if err != nil {
		t.Fatalf("not a valid program: %v", err)
	}
	return machine{vm}
}

// verdict lays out struct seccomp_data. The machine reads words in network
// order where the kernel reads its own, so every word is written that way;
// the order of the words is little-endian, as on both architectures.
func (m machine) verdict(t testing.TB, audit, number uint32, args [6]uint64) seccomp.Verdict {
	t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[0:], number)
	binary.BigEndian.PutUint32(data[4:], audit)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[16+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(data[20+8*i:], uint32(arg>>32))
	}
	verdict, err := m.vm.Run(data)
	if err != nil {
		t.Fatalf("cannot run the program: %v", err)
	}
	return seccomp.Verdict(uint32(verdict))
}

// meaning is the table's verdict, read in the plainest way.
func meaning(arch seccomp.Arch, policy seccomp.Policy, audit, number uint32, args [6]uint64) seccomp.Verdict {
	switch {
	case audit != arch.Audit:
		return seccomp.Kill
	case number == math.MaxUint32:
		return seccomp.Allow
	case number&arch.Alien != 0:
		return seccomp.Kill
	case int64(number) >= int64(len(arch.Calls)) || arch.Calls[number] == "":
		return policy.Unknown
	}
	for _, rule := range policy.Rules {
		holds := slices.Contains(rule.Calls, arch.Calls[number])
		for _, test := range rule.When {
			holds = holds && slices.Contains(test.Values, args[test.Arg]&test.Mask) != test.Not
		}
		if holds {
			return rule.Verdict
		}
	}
	return seccomp.Allow
}

func compile(t testing.TB, arch seccomp.Arch, policy seccomp.Policy) machine {
	t.Helper()
	program, err := seccomp.Compile(arch, policy)
	if err != nil {
		t.Fatal(err)
	}
	return newMachine(t, program)
}

func policies() map[string]seccomp.Policy {
	return map[string]seccomp.Policy{
		"sandbox": seccomp.Sandbox(seccomp.Options{}),
		"nested":  seccomp.Sandbox(seccomp.Options{Nested: true}),
		"watched": seccomp.Watched(seccomp.Options{}),
		"install": seccomp.Sandbox(seccomp.Options{Install: true}),
	}
}

// corners are the values of one argument at which some test of the call may
// change its mind, with and without bits that the kernel ignores.
func corners(policy seccomp.Policy, call string, arg int) []uint64 {
	values := []uint64{0}
	for _, rule := range policy.Rules {
		if !slices.Contains(rule.Calls, call) {
			continue
		}
		for _, test := range rule.When {
			if test.Arg != arg {
				continue
			}
			values = append(values, test.Mask, ^test.Mask, math.MaxUint64)
			for _, value := range test.Values {
				values = append(values, value, value+1, value-1, value|^test.Mask, value|1<<32)
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

func TestCompiledFormMeansTheTable(t *testing.T) {
	t.Parallel()
	for name, policy := range policies() {
		for _, arch := range arches() {
			t.Run(name+"/"+arch.Name, func(t *testing.T) {
				t.Parallel()
				machine := compile(t, arch, policy)
				seen := map[seccomp.Verdict]int{}
				check := func(audit, number uint32, args [6]uint64) {
					got, want := machine.verdict(t, audit, number, args), meaning(arch, policy, audit, number, args)
					seen[want]++
					if got != want {
						t.Errorf("arch %#x, call %d, args %#x: %v, the table says %v", audit, number, args, got, want)
					}
				}
				for number := range uint32(601) {
					call := ""
					if int(number) < len(arch.Calls) {
						call = arch.Calls[number]
					}
					for _, a0 := range corners(policy, call, 0) {
						for _, a1 := range corners(policy, call, 1) {
							for _, a2 := range corners(policy, call, 2) {
								for _, a3 := range corners(policy, call, 3) {
									check(arch.Audit, number, [6]uint64{a0, a1, a2, a3, 0, math.MaxUint64})
								}
							}
						}
					}
					for _, alien := range []uint32{1 << 30, 1 << 31, 3 << 30} {
						check(arch.Audit, number|alien, [6]uint64{})
					}
					check(unix.AUDIT_ARCH_I386, number, [6]uint64{})
				}
				for _, number := range []uint32{1<<30 - 1, 1<<31 - 1, 1<<31 + 1, 3<<30 - 1, math.MaxUint32 - 1, math.MaxUint32} {
					check(arch.Audit, number, [6]uint64{})
				}
				for _, verdict := range []seccomp.Verdict{seccomp.Allow, seccomp.Kill} {
					if seen[verdict] == 0 {
						t.Errorf("nothing that was tried is to %v: the test is blind", verdict)
					}
				}
			})
		}
	}
}

func FuzzCompiledFormMeansTheTable(f *testing.F) {
	f.Add(uint32(56), uint64(unix.CLONE_NEWUSER), uint64(0), uint64(0), uint64(0), false)
	f.Add(uint32(16), uint64(0), uint64(1<<32|unix.TIOCSTI), uint64(0), uint64(0), true)
	f.Add(uint32(41), uint64(unix.AF_NETLINK), uint64(unix.SOCK_RAW), uint64(12), uint64(0), false)
	f.Add(uint32(257), uint64(0), uint64(0), uint64(unix.O_CREAT), uint64(0o4755), false)
	f.Add(uint32(1<<30|39), uint64(0), uint64(0), uint64(0), uint64(0), false)
	type pair struct {
		arch    seccomp.Arch
		policy  seccomp.Policy
		machine machine
	}
	var pairs []pair
	for _, nested := range []bool{false, true} {
		for _, arch := range arches() {
			policy := seccomp.Sandbox(seccomp.Options{Nested: nested})
			pairs = append(pairs, pair{arch, policy, compile(f, arch, policy)})
		}
	}
	f.Fuzz(func(t *testing.T, number uint32, a0, a1, a2, a3 uint64, foreign bool) {
		for _, p := range pairs {
			audit := p.arch.Audit
			if foreign {
				audit ^= number | 1
			}
			args := [6]uint64{a0, a1, a2, a3, a0 ^ a1, a2 ^ a3}
			if got, want := p.machine.verdict(t, audit, number, args), meaning(p.arch, p.policy, audit, number, args); got != want {
				t.Errorf("%s, call %d, args %#x: %v, the table says %v", p.arch.Name, number, args, got, want)
			}
		}
	})
}

// FuzzCompiler makes policies out of bytes: wide masks, long lists, many rules
// for one call, more code than a conditional jump reaches.
func FuzzCompiler(f *testing.F) {
	f.Add([]byte("\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\x03aaaaaaaa"), uint64(1<<32))
	f.Add([]byte(strings.Repeat("\x07\x09\x0f\x00\x00\x00\xf0\x00\x00\x00\x05abcdefgh", 40)), uint64(0))
	f.Add([]byte(strings.Repeat("\x01\x18\x00\x00\x00\x00\xff\x00\x00\x00\x07zyxwvuts", 90)), uint64(0xff))
	f.Fuzz(func(t *testing.T, raw []byte, arg uint64) {
		arch := seccomp.AMD64()
		policy, interesting := arbitraryPolicy(arch, raw)
		program, err := seccomp.Compile(arch, policy)
		if err != nil {
			if strings.Contains(err.Error(), "split it") || strings.Contains(err.Error(), "are more than") {
				return
			}
			t.Fatal(err)
		}
		machine := newMachine(t, program)
		for number := range uint32(len(arch.Calls) + 2) {
			for _, value := range append(interesting, arg) {
				args := [6]uint64{value, arg, value ^ arg, ^value, value + 1, value << 32}
				if got, want := machine.verdict(t, arch.Audit, number, args), meaning(arch, policy, arch.Audit, number, args); got != want {
					t.Fatalf("call %d, args %#x: %v, the table says %v", number, args, got, want)
				}
			}
		}
	})
}

func arbitraryPolicy(arch seccomp.Arch, raw []byte) (seccomp.Policy, []uint64) {
	policy := seccomp.Policy{Unknown: seccomp.Fail(unix.ENOSYS)}
	var interesting []uint64
	next := func() (b byte) {
		if len(raw) > 0 {
			b, raw = raw[0], raw[1:]
		}
		return b
	}
	for len(raw) > 0 && len(policy.Rules) < 100 {
		rule := seccomp.Rule{Verdict: seccomp.Fail(unix.Errno(next()))}
		if call := arch.Calls[int(next())*2%len(arch.Calls)]; call != "" {
			rule.Calls = []string{call}
		}
		for range next() % 4 {
			var mask uint64
			for range 8 {
				mask = mask<<8 | uint64(next())
			}
			test := seccomp.Test{Arg: int(mask % 6), Mask: max(mask, 1), Not: mask&8 != 0}
			for range next()%40 + 1 {
				value := test.Mask & (uint64(next()) * 0x0101_0101_0101_0101)
				test.Values = append(test.Values, value)
				if len(interesting) < 16 {
					interesting = append(interesting, value)
				}
			}
			rule.When = append(rule.When, test)
		}
		policy.Rules = append(policy.Rules, rule)
	}
	return policy, interesting
}

func TestCompileRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]seccomp.Rule{
		"a misspelt call":         {Calls: []string{"monut"}},
		"no such argument":        {Calls: []string{"mount"}, When: []seccomp.Test{{Arg: 6, Mask: 1, Values: []uint64{1}}}},
		"an empty mask":           {Calls: []string{"mount"}, When: []seccomp.Test{{Values: []uint64{0}}}},
		"no values":               {Calls: []string{"mount"}, When: []seccomp.Test{{Mask: 1}}},
		"a value beside the mask": {Calls: []string{"mount"}, When: []seccomp.Test{{Mask: 1, Values: []uint64{3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if program, err := seccomp.Compile(seccomp.AMD64(), seccomp.Policy{Rules: []seccomp.Rule{rule}}); err == nil {
				t.Errorf("compiled to %d instructions", len(program))
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := seccomp.Compile(seccomp.AMD64(), seccomp.Sandbox(seccomp.Options{})); err != nil {
			b.Fatal(err)
		}
	}
}
