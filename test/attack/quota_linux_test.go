package attack_test

import (
	"encoding/json"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// quotaAttacks use up what the kernel counts by user.
func quotaAttacks() []attack {
	return []attack{{
		Name: "use up the user's quotas",
		Control: func(w *world) {
			instances, signals := w.quotas()
			got := w.outcomes(w.probeOutside("quota", strconv.Itoa(instances), strconv.Itoa(signals)))
			if got["instances"] != strconv.Itoa(instances) || got["signals"] != strconv.Itoa(signals) {
				w.Errorf("outside there are no more than %v, wanted %d and %d", got, instances, signals)
			}
		},
		Run: func(w *world) {
			instances, signals := w.quotas()
			w.sandbox()
			w.Must("create", "neighbour")
			w.Must("cp", w.Program("probe"), "neighbour:/tmp/probe")
			w.probeInside("descriptors") // brings it in
			got := w.Litterbox("exec", box, "--no-commit", "--", "/bin/sh", "-c",
				"/tmp/probe quota 100000 1000000 /tmp/held >/dev/null 2>&1 & until test -e /tmp/held; do sleep 0.05; done; cat /tmp/held")
			held := map[string]string{}
			if err := json.Unmarshal([]byte(got.Stdout), &held); err != nil {
				w.Fatalf("%v: %s%s", err, got.Stdout, got.Stderr)
			}
			for name, most := range map[string]int{"instances": instances, "signals": signals} {
				if n, err := strconv.Atoi(held[name]); err != nil || n == 0 || n >= most {
					w.Errorf("inside %q %s could be had, outside %d", held[name], name, most)
				}
			}
			for range 4 {
				at, err := unix.InotifyInit1(unix.IN_CLOEXEC)
				if err != nil {
					w.Fatalf("the human has no inotify left: %v", err)
				}
				w.must(unix.Close(at))
			}
			got = w.Inside("neighbour", "/tmp/probe", "quota", "4", "4")
			if got.Code != 0 || !strings.Contains(got.Stdout, `"instances":"4","signals":"4"`) {
				w.Errorf("in another sandbox: %s%s", got.Stdout, got.Stderr)
			}
		},
	}}
}

// quotas are a little more than a sandbox may have of instances of inotify and
// of pending signals.
func (w *world) quotas() (instances, signals int) {
	w.Helper()
	var limit unix.Rlimit
	w.must(unix.Getrlimit(unix.RLIMIT_SIGPENDING, &limit))
	instances, err := strconv.Atoi(strings.TrimSpace(w.Shell("cat /proc/sys/fs/inotify/max_user_instances").Stdout))
	w.must(err)
	return instances/4 + 1, int(limit.Max)/4 + 1
}
