package attack_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// processAttacks target PID 1, which runs under the attacker's own uid.
func processAttacks() []attack {
	return []attack{
		{
			Name: "end PID 1 by signals",
			Control: func(w *world) {
				pid := strings.TrimSpace(w.Shell("sleep 300 >/dev/null 2>&1 & echo $!").Stdout)
				w.probeOutside("signals", pid)
				var state string
				if !w.comes(func() bool { // killed is not yet dead
					state = w.Shell("grep State: /proc/" + pid + "/status").Stdout
					return state == "" || strings.Contains(state, "Z") || strings.Contains(state, "X")
				}) {
					w.Fatalf("a process survives every signal outside too: %s", state)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				before := w.lease()
				if got := w.outcomes(w.probeInside("signals", "1")); len(got) != 128 {
					w.Fatalf("not every signal was sent: %v", got)
				}
				w.Inside(box, "/bin/sh", "-c", "kill -9 1; kill -19 1; kill -9 -1")
				got := w.Inside(box, "echo", "alive")
				if got.Stdout != "alive\n" || w.lease() != before {
					w.Errorf("after every signal to PID 1 the sandbox answers %q (%s), lease %s instead of %s", got.Stdout, got.Stderr, w.lease(), before)
				}
			},
		},
		{
			Name: "trace and read PID 1",
			Control: func(w *world) {
				pid := strings.TrimSpace(w.Shell("sleep 300 >/dev/null 2>&1 & echo $!").Stdout)
				defer w.Shell("kill -9 " + pid)
				w.await("the process runs its program", func() bool { return w.Shell("grep -qx sleep /proc/"+pid+"/comm").Code == 0 })
				got := w.outcomes(w.probeOutside("process", pid))
				for _, look := range []string{"environ", "maps", "auxv", "root", "cwd", "exe", "fd", "root/etc", "write mem"} {
					if got[look] != "ok" {
						w.Errorf("outside a process of one's own cannot be looked into either: %s answers %s", look, got[look])
					}
				}
			},
			Run: func(w *world) {
				w.sandbox()
				got := w.outcomes(w.probeInside("process", "1"))
				for _, look := range slices.Sorted(maps.Keys(got)) {
					if got[look] != "EPERM" && got[look] != "EACCES" {
						w.Errorf("PID 1 can be looked into: %s answers %s", look, got[look])
					}
				}
			},
		},
		{
			Name: "slow down PID 1, or take its limits",
			Control: func(w *world) {
				pid := strings.TrimSpace(w.Shell("sleep 300 >/dev/null 2>&1 & echo $!").Stdout)
				defer w.Shell("kill -9 " + pid)
				for name, answer := range w.outcomes(w.probeOutside("others", pid)) {
					if answer != "ok" {
						w.Errorf("outside %s of a process of one's own answers %s", name, answer)
					}
				}
			},
			Run: func(w *world) {
				w.sandbox()
				threads := strings.Fields(w.Must("exec", box, "--no-commit", "--", "ls", "/proc/1/task"))
				if len(threads) < 2 {
					w.Fatalf("PID 1 has the threads %q", threads)
				}
				// Scheduling and limits, as ps and proc(5) show them.
				const look = "cat /proc/1/limits; for t in /proc/1/task/*; do sed 's/.*) //' $t/stat | cut -d' ' -f16,17,38,39; grep Cpus_allowed: $t/status; done | sort | uniq"
				before := w.Inside(box, "/bin/sh", "-c", look).Stdout
				// 1 is also the number of its group and session.
				for name, answer := range w.outcomes(w.probeInside(append([]string{"others"}, threads...)...)) {
					if answer != "EPERM" && answer != "ESRCH" { // a thread may have ended
						w.Errorf("of PID 1 %s answers %s", name, answer)
					}
				}
				w.Inside(box, "/bin/sh", "-c", "renice -n 19 -p 1; renice -n 19 -g 1; renice -n 19 -u $(id -u); ionice -c 3 -P 1; taskset -ap 1 1; chrt -ai -p 0 1; prlimit -p 1 --nofile=1:1")
				w.probeInside("everybody")
				if after := w.Inside(box, "/bin/sh", "-c", look).Stdout; after != before {
					w.Errorf("PID 1 was changed from\n%s\nto\n%s", before, after)
				}
				for name, answer := range w.outcomes(w.probeInside("self")) {
					if answer != "ok" && name != "limit child" { // its number may not stay its own
						w.Errorf("what programs do to themselves: %s answers %s", name, answer)
					}
				}
				tools := "set -e; nice -n 5 true; sleep 60 & renice -n 19 -p $!; ionice -c 3 -p $!; taskset -p $!; chrt -b -p 0 $!; prlimit -p $!; kill $!; prlimit --nofile=100:100 true"
				if w.Place == threat.Image || w.Place == threat.Machine { // which has few of them
					tools = "sleep 60 & kill $!"
				}
				got := w.Inside(box, "/bin/sh", "-c", tools)
				if got.Code != 0 {
					w.Errorf("ordinary tools fail: %s%s", got.Stdout, got.Stderr)
				}
			},
		},
		{
			Name: "enter new namespaces",
			Control: func(w *world) {
				for name, answer := range w.outcomes(w.probeOutside("namespaces")) {
					if answer != "ok" {
						w.Errorf("outside, %s answers %s", name, answer)
					}
				}
			},
			Run: func(w *world) {
				w.sandbox()
				for name, answer := range w.outcomes(w.probeInside("namespaces")) {
					if answer != "EPERM" {
						w.Errorf("inside, %s answers %s", name, answer)
					}
				}
				got := w.Inside(box, "/bin/sh", "-c", "unshare -Ur echo ENTERED; nsenter -t 1 -m echo ENTERED; chroot / echo ENTERED; setpriv --nnp echo harmless")
				if strings.Contains(got.Stdout, "ENTERED") {
					w.Errorf("namespaces can be entered: %s", got.Stdout)
				}
			},
		},
	}
}

// lease is the handle of the running place: another one means a restart.
func (w *world) lease() string {
	w.Helper()
	var status struct {
		Lease struct{ Handle string }
	}
	if err := json.Unmarshal([]byte(w.Must("status", box, "--json")), &status); err != nil {
		w.Fatal(err)
	}
	return status.Lease.Handle
}
