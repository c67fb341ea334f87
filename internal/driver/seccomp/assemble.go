//go:build linux

package seccomp

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func finish(verdict Verdict) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: uint32(verdict)}
}

// search finds the span of the number in the accumulator by bisection. The code
// of every span is inline, so a jump may be far; conditional jumps reach 255
// instructions and go through an unconditional one beyond that.
func search(all []span) ([]unix.SockFilter, error) {
	if len(all) == 1 {
		return all[0].code()
	}
	middle := len(all) / 2
	below, err := search(all[:middle])
	if err != nil {
		return nil, err
	}
	above, err := search(all[middle:])
	if err != nil {
		return nil, err
	}
	jump := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: all[middle].from}
	code := make([]unix.SockFilter, 0, 2+len(below)+len(above))
	if len(below) <= math.MaxUint8 {
		jump.Jt = uint8(len(below))
		code = append(code, jump)
	} else {
		jump.Jf = 1
		code = append(code, jump, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(below))})
	}
	return append(append(code, below...), above...), nil
}

// code tries the rules of a span in order. It is built from its end, because a
// test that does not hold jumps over the rest.
func (s span) code() ([]unix.SockFilter, error) {
	code := []unix.SockFilter{finish(s.last)}
	for i := len(s.rules) - 1; i >= 0; i-- {
		rule := []unix.SockFilter{finish(s.rules[i].Verdict)}
		for j := len(s.rules[i].When) - 1; j >= 0; j-- {
			test, err := s.rules[i].When[j].code(len(rule))
			if err != nil {
				return nil, err
			}
			rule = append(test, rule...)
		}
		code = append(rule, code...)
	}
	return code, nil
}

// Where a comparison goes: on to the next instruction, over some, or to the
// end of the test with an answer.
const (
	hit  = -1
	miss = -2
)

// code leaves through its end when the test holds, and otherwise skips that
// many instructions after its end.
func (t Test) code(skip int) ([]unix.SockFilter, error) {
	type compare struct{ at, yes, no int }
	var code []unix.SockFilter
	var compares []compare
	word := func(half int) {
		code = append(code, load(uint32(offsetArgs+8*t.Arg+4*half)))
		if mask := uint32(t.Mask >> (32 * half)); mask != math.MaxUint32 {
			code = append(code, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask})
		}
	}
	equal := func(half int, value uint64, yes, no int) {
		compares = append(compares, compare{len(code), yes, no})
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(value >> (32 * half))})
	}
	low, high := uint32(t.Mask) != 0, t.Mask>>32 != 0
	if low != high {
		half := 0
		if high {
			half = 1
		}
		word(half)
		for _, value := range t.Values {
			equal(half, value, hit, 0)
		}
	} else {
		for _, value := range t.Values {
			word(0)
			lower := len(compares)
			equal(0, value, 0, 0)
			before := len(code)
			word(1)
			equal(1, value, hit, 0)
			compares[lower].no = len(code) - before
		}
	}
	// Falling out of the last value means that none was equal. If that value has
	// two halves, its first comparison falls out as well.
	for i := range compares {
		if c := &compares[i]; c.no >= 0 && c.at+1+c.no == len(code) {
			c.no = miss
		}
	}

	equals, differs := len(code), len(code)+skip
	if t.Not {
		equals, differs = differs, equals
	}
	for _, c := range compares {
		for _, way := range []struct {
			to    int
			field *uint8
		}{{c.yes, &code[c.at].Jt}, {c.no, &code[c.at].Jf}} {
			distance := way.to
			switch way.to {
			case hit:
				distance = equals - c.at - 1
			case miss:
				distance = differs - c.at - 1
			}
			if distance > math.MaxUint8 {
				return nil, fault.New(fault.Internal, "cannot compile the system call policy: a rule is too long, split it: %+v", t)
			}
			*way.field = uint8(distance)
		}
	}
	return code, nil
}
