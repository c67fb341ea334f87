package git

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Systems without limits for other processes have a watch: it signals what is over
// its bounds, once as the kernel would, and ends with the process.
func TestWatch(t *testing.T) {
	t.Parallel()
	b := Bounds{Memory: 100, time: time.Minute}
	for name, test := range map[string]struct {
		bounds Bounds
		seen   []taken
		want   []syscall.Signal
	}{
		"within":               {b, []taken{{100, time.Minute}, {1, 0}}, nil},
		"memory":               {b, []taken{{1, 0}, {101, 0}, {101, 0}}, []syscall.Signal{signalMemory, syscall.SIGKILL}},
		"a peak of memory":     {b, []taken{{101, 0}, {1, 0}, {101, 0}}, []syscall.Signal{signalMemory, signalMemory}},
		"processors":           {b, []taken{{1, time.Minute + 1}, {1, 2 * time.Minute}}, []syscall.Signal{syscall.SIGXCPU, syscall.SIGKILL}},
		"no bounds":            {Bounds{}, []taken{{1 << 40, time.Hour}}, nil},
		"ended from the start": {b, nil, nil},
	} {
		tick := make(chan time.Time, len(test.seen)+1)
		for range cap(tick) {
			tick <- time.Time{}
		}
		seen := test.seen
		var got []syscall.Signal
		watch(test.bounds, tick, func() (taken, error) {
			if len(seen) == 0 {
				return taken{}, errors.New("it has ended")
			}
			now := seen[0]
			seen = seen[1:]
			return now, nil
		}, func(s syscall.Signal) { got = append(got, s) })
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What the watch ends is reported as what it is.
func TestWatchedEndIsNamed(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(signalMemory); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatal(err)
	}
	err := Command{Args: []string{"cat-file"}}.exceeded(exit, "")
	if fault.KindOf(err) != fault.Denied || err.Error() != "git cat-file needs more than 2147483648 bytes of memory" {
		t.Errorf("%v", err)
	}
}
