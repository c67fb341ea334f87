package attack_test

import (
	"os"
	"strconv"
	"strings"
)

// resourceAttacks use more than their share.
func resourceAttacks() []attack {
	const storm = "for i in $(seq 300); do sleep 301 & done 2>/dev/null; "
	// until waits inside for processes to have become what they shall be.
	until := func(many string) string {
		return "; until test $(cat /proc/[0-9]*/comm 2>/dev/null | grep -cx sleep) -ge " + many + "; do :; done"
	}
	return []attack{
		{
			Name:   "outlive a timeout by forking",
			Threat: "a fork storm that nobody can end",
			Control: func(w *world) {
				w.sandbox()
				w.Inside(box, "/bin/sh", "-c", storm+"true"+until("300"))
				if got := w.sleepers(); got != 300 {
					w.Errorf("%d processes of the storm run, want 300", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				got := w.Litterbox("exec", box, "--no-commit", "--timeout", "2s", "--", "/bin/sh", "-c", "trap '' TERM; "+storm+"wait")
				if got.Code != 124 {
					w.Errorf("the storm exited %d, want 124: %s", got.Code, got.Stderr)
				}
				if left := w.sleepers(); left != 0 {
					w.Errorf("%d processes of the storm outlive their timeout", left)
				}
			},
		},
		{
			Name:   "outlive the sandbox",
			Threat: "processes of sessions of their own that go on after stop, on the host's time",
			Control: func(w *world) {
				w.sandbox()
				w.Inside(box, "/bin/sh", "-c", "for i in $(seq 50); do setsid sleep 301 & done"+until("50"))
				if got := w.sleepers(); got != 50 {
					w.Errorf("%d processes run, want 50", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				marker := "301." + strconv.Itoa(os.Getpid()) // nobody else sleeps as long
				w.Inside(box, "/bin/sh", "-c", "for i in $(seq 50); do setsid sleep "+marker+" & done"+until("50"))
				count := "pgrep -fxc 'sleep " + marker + "'"
				// A program has its name a moment before its arguments can be read.
				w.await("the host sees all of the processes", func() bool { return strings.TrimSpace(w.Shell(count).Stdout) == "50" })
				w.Must("stop", box)
				if got := strings.TrimSpace(w.Shell(count).Stdout); got != "0" {
					w.Errorf("%s processes outlive the sandbox", got)
				}
			},
		},
	}
}

// sleepers counts the storm's processes inside.
func (w *world) sleepers() int {
	w.Helper()
	got := w.Inside(box, "/bin/sh", "-c", "cat /proc/[0-9]*/comm | grep -cx sleep")
	n, err := strconv.Atoi(strings.TrimSpace(got.Stdout))
	if err != nil {
		w.Fatalf("cannot count processes inside: %q %s", got.Stdout, got.Stderr)
	}
	return n
}
