package attack_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// fuzzing returns how long to try, and the first seed.
func fuzzing(t *testing.T) (lasting time.Duration, seed uint64) {
	t.Helper()
	lasting, seed = 2*time.Second, 1
	var err error
	if text := os.Getenv("LITTERBOX_TEST_FUZZ_TIME"); text != "" {
		seed = uint64(time.Now().Unix())
		if lasting, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("LITTERBOX_TEST_FUZZ_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("for %v; again with LITTERBOX_TEST_FUZZ_SEED=%d", lasting, seed)
	return lasting, seed
}

// notifyInside runs the probe for so long, as several commands where it is longer
// than the harness allows one, and adds up their answers.
func (w *world) notifyInside(lasting time.Duration, seed uint64, args ...string) map[string]int {
	w.Helper()
	const longest, seeds = time.Minute, 1 << 20 // of one command, which uses fewer seeds
	answers := map[string]int{}
	for ; lasting > 0; lasting, seed = lasting-longest, seed+seeds {
		part := append([]string{"notify", strconv.FormatUint(seed, 10), min(lasting, longest).String()}, args...)
		for name, count := range w.outcomes(w.probeInside(part...)) {
			n, err := strconv.Atoi(count)
			w.must(err)
			answers[name] += n
		}
	}
	return answers
}

// The filter puts some calls to the guest: it must not be led to another file,
// not change itself, and answer all the others whatever one caller does. As a
// control, outside the same mode can be set.
func TestHostileNotifications(t *testing.T) {
	lasting, seed := fuzzing(t)
	for _, place := range []threat.Place{"", threat.Copy, threat.Degraded} {
		t.Run("place "+string(place), func(t *testing.T) {
			w := newWorld(t)
			w.in(place)
			w.wantModesOutside()
			victim := filepath.Join(w.Home, "private")
			w.Put(filepath.Join(victim, "file"), w.Secret)
			w.must(os.Chmod(victim, 0o700))
			outside := []string{victim, filepath.Join(w.Repo, "src"), filepath.Join(w.Repo, "README")}
			before := w.modes(outside...)
			w.sandbox()
			at := w.scratch() + "/fuzz"
			limits := func() string {
				if place == threat.Degraded { // PID 1 is the machine's
					return ""
				}
				return w.Inside(box, "/bin/sh", "-c", "cat /proc/1/limits; cut -d' ' -f 18,19,40,41 /proc/1/stat; grep Cpus_allowed: /proc/1/status").Stdout
			}
			guest, first := w.guest(), limits()
			if got := w.InsideShell(box, "mkdir -p "+at); got.Code != 0 {
				t.Fatal(got.Stderr)
			}
			aim := "1"
			if place == threat.Degraded {
				other := exec.Command("sleep", "600")
				w.must(other.Start())
				t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
				aim = strconv.Itoa(other.Process.Pid)
			}
			answers := w.notifyInside(lasting, seed, at, victim, aim)
			t.Logf("%v", answers)
			if answers["ok"] == 0 || answers["EPERM"] == 0 || answers["EFAULT"] == 0 {
				t.Errorf("the calls answered %v; want successes, refusals and addresses that are none", answers)
			}
			if answers["hangs"] != 0 {
				t.Errorf("%d processes hung in a call", answers["hangs"])
			}
			if got := w.Inside(box, "/bin/sh", "-c", "mkdir d && mv d e && chmod 2755 e && echo serves"); got.Stdout != "serves\n" {
				t.Errorf("afterwards calls are not answered: %+v", got)
			}
			if now := w.guest(); now != guest {
				t.Errorf("the guest was %s and is %s", guest, now)
			}
			if now := limits(); now != first {
				t.Errorf("PID 1 was changed from\n%s\nto\n%s", first, now)
			}
			if after := w.modes(outside...); after != before {
				t.Errorf("modes outside were changed from\n%s\nto\n%s", before, after)
			}
			for line := range strings.Lines(w.modes(w.State)) {
				if (strings.HasPrefix(line, "u") || strings.HasPrefix(line, "g") || strings.HasPrefix(line, "ug")) && !strings.HasPrefix(line, "d") {
					t.Errorf("a set-id file lies on the host: %s", line)
				}
			}
		})
	}
}

// wantModesOutside is the control: only the sandbox prevents it.
func (w *world) wantModesOutside() {
	w.Helper()
	file := filepath.Join(w.Dir, "control")
	w.Put(file, "")
	w.must(os.Chmod(file, fs.ModeSetuid|0o755))
	if info, err := os.Stat(file); err != nil || info.Mode()&fs.ModeSetuid == 0 {
		w.Fatalf("outside a set-id file cannot be made either: %v, %v", info, err)
	}
}

// guest names the process that serves the sandbox.
func (w *world) guest() string {
	w.Helper()
	_, guest, err := w.Processes(box)
	w.must(err)
	return strconv.Itoa(guest.PID) + " of " + strconv.FormatUint(guest.StartTime, 10)
}

// modes lists what lies below directories, each line beginning with its mode.
func (w *world) modes(dirs ...string) string {
	w.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		w.must(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil // gone meanwhile, or without permissions
			}
			if info, err := entry.Info(); err == nil {
				b.WriteString(info.Mode().String() + " " + path + "\n")
			}
			return nil
		}))
	}
	return b.String()
}
