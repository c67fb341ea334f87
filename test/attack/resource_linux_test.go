package attack_test

import (
	"os"
	"strconv"
	"strings"
)

// resourceAttacks use more than their share.
func resourceAttacks() []attack {
	sleep := "sleep 301." + strconv.Itoa(os.Getpid()) // no other test sleeps as long
	storm := "for i in $(seq 300); do " + sleep + " & done 2>/dev/null; "
	// running counts the storm's processes, from the host: in the degraded tier
	// those of the whole machine are seen inside.
	running := func(w *world) string { return strings.TrimSpace(w.Shell("pgrep -fxc '" + sleep + "'").Stdout) }
	// A program has its name a moment before its arguments can be read.
	awaits := func(w *world, many string) {
		w.Helper()
		w.await("the host sees "+many+" processes", func() bool { return running(w) == many })
	}
	return []attack{
		{
			Name: "outlive a timeout by forking",
			Control: func(w *world) {
				w.sandbox()
				w.Inside(box, "/bin/sh", "-c", storm+"true")
				awaits(w, "300")
			},
			Run: func(w *world) {
				w.sandbox()
				got := w.Litterbox("exec", box, "--no-commit", "--timeout", "2s", "--", "/bin/sh", "-c", "trap '' TERM; "+storm+"wait")
				if got.Code != 124 {
					w.Errorf("the storm exited %d, want 124: %s", got.Code, got.Stderr)
				}
				if left := running(w); left != "0" {
					w.Errorf("%s processes of the storm outlive their timeout", left)
				}
			},
		},
		{
			Name: "outlive the sandbox",
			Control: func(w *world) {
				w.sandbox()
				w.Inside(box, "/bin/sh", "-c", "for i in $(seq 50); do setsid "+sleep+" & done")
				awaits(w, "50")
			},
			Run: func(w *world) {
				w.sandbox()
				w.Inside(box, "/bin/sh", "-c", "for i in $(seq 50); do setsid "+sleep+" & done")
				awaits(w, "50")
				w.Must("stop", box)
				if got := running(w); got != "0" {
					w.Errorf("%s processes outlive the sandbox", got)
				}
			},
		},
	}
}
