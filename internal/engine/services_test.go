package engine_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// served is a world whose sandbox fix has services: web needs db, bad crashes,
// and spare is started by nothing.
func served(t *testing.T) (*world, context.Context) {
	t.Helper()
	w, ctx := newWorld(t), gittest.Context(t)
	w.configure(t, `
[container.services.web]
command = ["serve"]
needs = ["db"]
[container.services.db]
command = ["serve"]
ready = { command = ["true"] }
[container.services.bad]
command = ["false"]
ready = { command = ["true"] }
[container.services.spare]
command = ["serve"]
autostart = false
`)
	if _, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"}); err != nil {
		t.Fatal(err)
	}
	return w, ctx
}

// configure writes the user's own configuration, which counts without trust.
func (w *world) configure(t *testing.T, text string) {
	t.Helper()
	gittest.Write(t, os.Getenv("XDG_CONFIG_HOME"), "litterbox/config.toml", text)
}

// states are the services by name.
func states(list []engine.ServiceStatus) map[string]service.State {
	all := map[string]service.State{}
	for _, s := range list {
		all[s.Name] = s.State
	}
	return all
}

func (w *world) service(t *testing.T, ctx context.Context, action engine.ServiceWish, names ...string) map[string]service.State {
	t.Helper()
	done, err := w.Service(ctx, engine.ServiceRequest{Dir: w.dir, Name: "fix", Action: action, Services: names})
	if err != nil {
		t.Fatalf("%s %q: %v", action, names, err)
	}
	return states(done.Services)
}

// Wishes about services survive the place they run in, and stopping one keeps it
// stopped.
func TestServicesOverStopAndStart(t *testing.T) {
	w, ctx := served(t)
	want := map[string]service.State{"web": service.Running, "db": service.Running, "bad": service.Backoff, "spare": service.Stopped}
	if diff := cmp.Diff(want, w.service(t, ctx, service.WishStatus)); diff != "" {
		t.Errorf("after create (-want +got):\n%s", diff)
	}
	if got := w.service(t, ctx, service.WishStart, "spare"); got["spare"] != service.Running {
		t.Errorf("started: %v", got)
	}
	if got := w.service(t, ctx, service.WishStop, "web"); got["web"] != service.Stopped {
		t.Errorf("stopped: %v", got)
	}
	if _, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "fix"}); err != nil {
		t.Fatal(err)
	}
	want = map[string]service.State{"web": service.Stopped, "db": service.Stopped, "bad": service.Stopped, "spare": service.Stopped}
	if diff := cmp.Diff(want, w.service(t, ctx, service.WishStatus)); diff != "" {
		t.Errorf("while it is stopped (-want +got):\n%s", diff)
	}
	if _, err := w.Start(ctx, w.dir, "fix", false); err != nil {
		t.Fatal(err)
	}
	want = map[string]service.State{"web": service.Stopped, "db": service.Running, "bad": service.Backoff, "spare": service.Running}
	if diff := cmp.Diff(want, w.service(t, ctx, service.WishStatus)); diff != "" {
		t.Errorf("after the next start (-want +got):\n%s", diff)
	}
	// Starting one that needs another starts both.
	w.service(t, ctx, service.WishStop, "db")
	if got := w.service(t, ctx, service.WishStart, "web"); got["web"] != service.Running || got["db"] != service.Running {
		t.Errorf("web with its needs: %v", got)
	}
	if _, err := w.Service(ctx, engine.ServiceRequest{Dir: w.dir, Name: "fix", Action: service.WishStop, Services: []string{"none"}}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a service that is not there: %v", err)
	}
}

// A service that crashes is named with the end of its log; one that is ready is not.
func TestServicesThatAreNotReady(t *testing.T) {
	w, ctx := served(t)
	failed, err := w.AwaitServices(ctx, w.dir, "fix", time.Minute)
	if err != nil || len(failed) != 1 || failed[0].Name != "bad" || failed[0].Last == nil || failed[0].Last.Code != 1 {
		t.Fatalf("not ready: %+v, %v", failed, err)
	}
	if diff := cmp.Diff([]string{"started", "ended"}, failed[0].Log); diff != "" {
		t.Errorf("its log (-want +got):\n%s", diff)
	}
	w.service(t, ctx, service.WishStop, "bad")
	if failed, err := w.AwaitServices(ctx, w.dir, "fix", time.Minute); err != nil || len(failed) > 0 {
		t.Errorf("the others: %+v, %v", failed, err)
	}
}

// A definition that changed counts without another create, and a service that is
// no longer configured ends.
func TestServicesFollowTheConfiguration(t *testing.T) {
	w, ctx := served(t)
	w.configure(t, "[container.services.db]\ncommand = [\"serve\"]\n[container.services.new]\ncommand = [\"serve\"]\n")
	want := map[string]service.State{"db": service.Running, "new": service.Running}
	w.service(t, ctx, service.WishStart)
	if diff := cmp.Diff(want, w.service(t, ctx, service.WishStatus)); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
}
