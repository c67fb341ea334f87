package attack_test

import (
	"maps"
	"runtime"
	"slices"

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
				if got := w.outcomes(w.probeOutside("foreign", entry)); got[entry] == "" {
					w.Errorf("the call does not come back outside: %v", got)
				}
			},
			Run: func(w *world) {
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

// deniedCalls returns the answer of each attempt of `probe calls` inside.
func deniedCalls() map[string]string {
	denied := map[string]string{}
	for _, calls := range probe.Denied() {
		maps.Copy(denied, calls)
	}
	return denied
}
