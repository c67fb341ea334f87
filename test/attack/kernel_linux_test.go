package attack_test

import (
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/redteam/probe"
)

// kernelAttacks target the kernel, through interfaces by which programs have
// left sandboxes.
func kernelAttacks() []attack {
	all := []attack{{
		Name: "make forbidden system calls",
		Control: func(w *world) {
			got := w.outcomes(w.probeOutside("bare", "calls"))
			var blind []string
			for name, inside := range deniedCalls() {
				if got[name] == inside {
					blind = append(blind, name)
				}
			}
			slices.Sort(blind)
			// Kernels differ in what they themselves refuse to an ordinary
			// user (sysctls, missing modules), with the same errno.
			w.Logf("the kernel refuses by itself: %q", blind)
			if len(blind) > len(deniedCalls())/5 {
				w.Errorf("too many calls answer outside as they do inside: %q", blind)
			}
		},
		Run: func(w *world) {
			w.sandbox()
			if diff := cmp.Diff(deniedCalls(), w.outcomes(w.probeInside("calls"))); diff != "" {
				w.Errorf("answers inside (-want +got):\n%s", diff)
			}
		},
	}}
	if runtime.GOARCH != "amd64" {
		return all // one way into the kernel
	}
	for _, entry := range []string{"int80", "x32"} {
		all = append(all, attack{
			Name: "enter the kernel by another door: " + entry,
			Control: func(w *world) {
				w.needEntry(entry)
				if got := w.outcomes(w.probeOutside("foreign", entry)); got[entry] == "" {
					w.Errorf("the call does not come back outside: %v", got)
				}
			},
			Run: func(w *world) {
				w.needEntry(entry)
				w.sandbox()
				const killed = 128 + 31 // SIGSYS
				if got := w.probeInside("foreign", entry); got.Code != killed {
					w.Errorf("the call came back: exit code %d, %s%s; want %d", got.Code, got.Stdout, got.Stderr, killed)
				}
			},
		})
	}
	return all
}

// needEntry skips an attack by an entry that this kernel does not have.
func (w *world) needEntry(entry string) {
	w.Helper()
	if got := w.probeOutside("foreign", entry); probe.NoEntry(got.Code, got.Stderr) {
		w.Skip(probe.WhyNoEntry)
	}
}

// A kernel without the 32-bit entry answers int 0x80 as any kernel answers hlt: that
// is told from a call that comes back, and from one that a filter ends.
func TestMissingEntryIsTold(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("one way into the kernel")
	}
	w := newWorld(t)
	if got := w.probeOutside("foreign", "none"); !probe.NoEntry(got.Code, got.Stderr) {
		t.Errorf("a fault is taken for an entry: %+v", got)
	}
	if got := w.probeOutside("foreign", "x32"); probe.NoEntry(got.Code, got.Stderr) {
		t.Errorf("a call that comes back is taken for none: %+v", got)
	}
	const bySIGSYS = 128 + 31
	if probe.NoEntry(bySIGSYS, "") {
		t.Error("a filter's end is taken for a missing entry")
	}
}

// deniedCalls returns the answer of each attempt of `probe calls` inside.
func deniedCalls() map[string]string {
	denied := map[string]string{}
	for _, calls := range probe.Denied() {
		maps.Copy(denied, calls)
	}
	return denied
}
