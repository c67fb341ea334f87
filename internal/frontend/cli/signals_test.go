package cli_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

func TestRelay(t *testing.T) {
	const int_, term, hup, quit = syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT
	for _, c := range []struct {
		name    string
		started bool
		signals []os.Signal
		at      []time.Duration
		want    []string
		gaveUp  bool
	}{
		{"each by its name", true, []os.Signal{term, hup, quit, int_}, make([]time.Duration, 4), []string{"TERM", "HUP", "QUIT", "INT"}, false},
		{"second Ctrl-C soon", true, []os.Signal{int_, int_}, []time.Duration{0, time.Second}, []string{"INT", "KILL"}, false},
		{"second Ctrl-C late", true, []os.Signal{int_, int_}, []time.Duration{0, 3 * time.Second}, []string{"INT", "INT"}, false},
		{"third Ctrl-C gives up", true, []os.Signal{int_, int_, int_}, []time.Duration{0, time.Second, 9 * time.Second}, []string{"INT", "KILL"}, true},
		{"nothing runs yet", false, []os.Signal{int_}, make([]time.Duration, 1), nil, true},
		{"a flood does not block", true, make20(term), make([]time.Duration, 20), []string{
			"TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM", "TERM",
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			names, gaveUp := cli.Relay(c.started, c.signals, c.at)
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Errorf("the command gets (-want +got):\n%s", diff)
			}
			if gaveUp != c.gaveUp {
				t.Errorf("gave up: %t, want %t", gaveUp, c.gaveUp)
			}
		})
	}
}

func make20(s os.Signal) []os.Signal {
	signals := make([]os.Signal, 20)
	for i := range signals {
		signals[i] = s
	}
	return signals
}

func TestInterruptsThatAreLeftToGit(t *testing.T) {
	const int_, term = syscall.SIGINT, syscall.SIGTERM
	for _, c := range []struct {
		name     string
		patience int
		signals  []os.Signal
		want     []bool
	}{
		{"a pipe reads the diff", 0, []os.Signal{int_}, []bool{false}},
		{"a merge", 1, []os.Signal{int_, int_}, []bool{true, false}},
		{"a pager", -1, []os.Signal{int_, int_, int_, term}, []bool{true, true, true, false}},
		{"only interrupts", 1, []os.Signal{term, int_}, []bool{false, true}},
	} {
		if diff := cmp.Diff(c.want, cli.Spared(c.patience, c.signals...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
