package sandbox_test

import (
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func TestParseLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       sandbox.Limits
		again      string // how it is written back; empty: as text
	}{
		{"cpus", "1.5", sandbox.Limits{CPUs: 1.5}, ""},
		{"cpus", "2.0", sandbox.Limits{CPUs: 2}, "2"},
		{"memory", "4GiB", sandbox.Limits{Memory: 4 << 30}, ""},
		{"memory", "4g", sandbox.Limits{Memory: 4 << 30}, "4GiB"},
		{"memory", "1.5 GiB", sandbox.Limits{Memory: 3 << 29}, "1.5GiB"},
		{"memory", "100MB", sandbox.Limits{Memory: 100e6}, "95.4MiB"},
		{"memory", "67_108_864", sandbox.Limits{Memory: 64 << 20}, "64MiB"},
		{"memory", "none", sandbox.Limits{Memory: sandbox.NoLimit}, ""},
		{"pids", "2_000", sandbox.Limits{PIDs: 2000}, "2000"},
		{"disk", "10GiB", sandbox.Limits{Disk: 10 << 30}, ""},
		{"disk-io", "50MiB/s", sandbox.Limits{DiskIO: 50 << 20}, ""},
		{"open-files", "1024", sandbox.Limits{OpenFiles: 1024}, ""},
		{"time", "90m", sandbox.Limits{Time: 90 * time.Minute}, "1h30m"},
		{"time", "1h", sandbox.Limits{Time: time.Hour}, ""},
		{"time", "90s", sandbox.Limits{Time: 90 * time.Second}, "1m30s"},
	} {
		got, err := sandbox.Limits{}.Parse(c.name, c.text)
		if err != nil || got != c.want {
			t.Errorf("%s=%s: %+v, %v; want %+v", c.name, c.text, got, err, c.want)
		}
		if c.again == "" {
			c.again = c.text
		}
		if text := got.Text(c.name); text != c.again {
			t.Errorf("%s=%s is written %q, want %q", c.name, c.text, text, c.again)
		}
	}
}

func TestParseLimitsRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"cpus", "0"}, {"cpus", "-1"}, {"cpus", "NaN"}, {"cpus", "1e9"}, {"cpus", "two"}, {"cpus", ""},
		{"memory", "1KiB"}, {"memory", "-4GiB"}, {"memory", "4 giraffes"}, {"memory", "NaNGiB"}, {"memory", "Inf"}, {"memory", "9999999TiB"}, {"memory", ""},
		{"pids", "1"}, {"pids", "1.5"}, {"pids", "99999999999999999999"}, {"pids", "5000000"},
		{"disk", "lots"}, {"disk-io", "1B/s"}, {"open-files", "3"}, {"time", "10"}, {"time", "1ms"}, {"time", "-1h"},
		{"colour", "red"}, {"", "1"}, {"Memory", "1GiB"},
	} {
		before := sandbox.Limits{PIDs: 7}
		if _, err := before.Parse(c[0], c[1]); fault.KindOf(err) != fault.Invalid || fault.HintOf(err) == "" {
			t.Errorf("%s=%s: %v", c[0], c[1], err)
		}
	}
}

func FuzzParseLimits(f *testing.F) {
	for _, text := range []string{"4GiB", "1.5", "none", "30m", "1e308GiB", "_", "0x10", "１"} {
		for _, name := range sandbox.LimitNames() {
			f.Add(name, text)
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		got, err := sandbox.Limits{}.Parse(name, text)
		if err != nil {
			return
		}
		if n := got.Get(name); n == 0 || n < 0 && n != sandbox.NoLimit && name != sandbox.LimitTime {
			t.Errorf("%s=%q is %v", name, text, n)
		}
		if got.Text(name) == "" {
			t.Errorf("%s=%q is written as nothing", name, text)
		}
	})
}

func TestWiderLimits(t *testing.T) {
	t.Parallel()
	few, many, none := sandbox.Limits{PIDs: 100}, sandbox.Limits{PIDs: 200}, sandbox.Limits{PIDs: sandbox.NoLimit}
	for _, c := range []struct {
		mine, bound sandbox.Limits
		want        bool
	}{
		{few, many, false}, {many, few, true}, {few, few, false}, {none, few, true}, {few, none, false},
		{sandbox.Limits{}, few, true}, {few, sandbox.Limits{}, false},
	} {
		if got := c.mine.Wider(sandbox.LimitPIDs, c.bound); got != c.want {
			t.Errorf("%+v is wider than %+v: %t", c.mine, c.bound, got)
		}
	}
}
