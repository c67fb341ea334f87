package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// FuzzHandle puts anything into the handle that a lease carries, and into the
// record of a pause: either is damaged, or names a place that is gone.
func FuzzHandle(f *testing.F) {
	add := func(place handle, was stopped) {
		f.Helper()
		lease, err := json.Marshal(place)
		pause, err2 := json.Marshal(was)
		if err := errors.Join(err, err2); err != nil {
			f.Fatal(err)
		}
		f.Add(lease, pause)
	}
	guest := sandbox.Process{PID: 31933, StartTime: 2450085, Boot: "0a1b2c3d-0000-4000-8000-000000000000"}
	add(handle{Guest: guest}, stopped{Guest: guest})
	add(handle{Guest: guest, Shift: 1 << 30, Group: &cgroup.Group{Parts: []cgroup.Part{
		{Version: 1, Dir: "/sys/fs/cgroup/memory/litterbox-x-0a1b2c3d", Controllers: []string{"memory"}},
		{Version: 2, Dir: "/sys/fs/cgroup/litterbox-x-0a1b2c3d", Controllers: []string{"pids", "freezer"}},
	}}}, stopped{Guest: guest, Before: []stoodStill{{1, 2}}})
	add(handle{Group: &cgroup.Group{}}, stopped{})
	add(handle{Guest: sandbox.Process{PID: -1}}, stopped{Guest: sandbox.Process{PID: 1}})
	for _, seed := range []string{"", "null", "{}", "[]", `{"guest":null,"group":null}`, `{"group":{"parts":[null]}}`, `{"guest":{"pid":1e99}}`} {
		f.Add([]byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, record, pause []byte) {
		lease := driver.Lease{ID: "x", SandboxID: "x", StateDir: t.TempDir(), Handle: record}
		if err := os.WriteFile(filepath.Join(lease.StateDir, stopFile), pause, 0o600); err != nil {
			t.Fatal(err)
		}
		place, err := local.Place[handle](lease)
		if err == nil {
			again, err := json.Marshal(place)
			lease.Handle = again
			same, err2 := local.Place[handle](lease)
			if err := errors.Join(err, err2); err != nil || !cmp.Equal(place, same) {
				t.Errorf("%q, %v: %s", record, err, cmp.Diff(place, same))
			}
			isStopped(lease.StateDir, place.Guest)
		}
		want := fault.Internal
		if err == nil {
			want = fault.KindOf(fault.Wrap("", driver.ErrMachineLost, "x"))
		}
		d, ctx := Driver{}, context.Background()
		_, limited := d.Limit(ctx, lease, sandbox.Limits{Memory: 1 << 30})
		_, measured := d.CollectMetrics(ctx, lease)
		for what, err := range map[string]error{
			"attach": d.Attach(ctx, lease), "pause": d.Pause(ctx, lease, ""), "resume": d.Resume(ctx, lease),
			"limit": limited, "measure": measured,
		} {
			if fault.KindOf(err) != want {
				t.Errorf("%s of %q: %v", what, record, err)
			}
		}
	})
}
