package process_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// FuzzStat gives a process any name, and puts anything into its /proc/pid/stat:
// a name never moves the fields after it.
func FuzzStat(f *testing.F) {
	f.Add("cat", uint32(31046), uint32(4194304), uint32(1), uint64(2450085), []byte("31933 (cat) R 31046 31046 11150 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 2450085 3133440 362 18446744073709551615 94367156047872 "+
		"94367156067753 140734122421248 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 94367156083760 94367156085376 94367940857856 140734122424995 140734122425032 140734122425032 140734122426347 0\n"))
	f.Add("a) Z 1 1 (b", uint32(0), uint32(0), uint32(0), uint64(0), []byte("1 (x) Z 0"))
	f.Add("\n) S", uint32(1<<31-1), uint32(1<<32-1), uint32(1<<31-1), uint64(1<<63-1), []byte("1 (x) S 1 1 1 1 1 -1 1 1 1 1 -1 -1 -1 -1 1 1 1 1 -1 1 1"))
	f.Add("", uint32(1), uint32(4), uint32(2), uint64(9), []byte(")"))
	f.Fuzz(func(t *testing.T, name string, parent, flags, threads uint32, start uint64, anything []byte) {
		parent, threads, start = parent>>1, threads>>1, start>>1 // the kernel's are signed
		want := process.Stat{State: 'S', Parent: int(parent), Flags: uint64(flags), CPU: 1 + 2 + 3 + 4, Threads: int(threads), Start: start, Resident: 362}
		line := fmt.Sprintf("31933 (%s) S %d 31046 11150 0 -1 %d 99 0 0 0 1 2 3 4 20 0 %d 0 %d 3133440 362 18446744073709551615 0\n", name, parent, flags, threads, start)
		if got, ok := process.ParseStat([]byte(line)); !ok || got != want {
			t.Errorf("%q, %v: %s", line, ok, cmp.Diff(want, got))
		}
		got, ok := process.ParseStat(anything)
		if !ok && got != (process.Stat{}) {
			t.Errorf("%q is refused, and means %+v", anything, got)
		}
		if ok && (got.Parent < 0 || got.Threads < 0 || got.Resident < 0) {
			t.Errorf("%q means %+v", anything, got)
		}
	})
}
