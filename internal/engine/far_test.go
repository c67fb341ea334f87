package engine_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/keeper/inprocess"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/local"
)

// carrying is a driver whose places have their files where the host must not
// look: the host has only the files that they began with, unchanged.
type carrying struct {
	driver.Driver
	dir  string       // the machine's disk
	mute *atomic.Bool // it does not list its files
}

func (c carrying) Traits() sandbox.Traits {
	t := c.Driver.Traits()
	t.Files = sandbox.FilesCarried
	return t
}

// Capabilities adds the limit that a host cannot enforce on another disk.
func (c carrying) Capabilities() driver.Capabilities {
	can := c.Driver.Capabilities()
	can.Traits, can.Limits = c.Traits(), append(can.Limits, sandbox.LimitDisk)
	return can
}

func (c carrying) upper(id string) string { return filepath.Join(c.dir, id, "upper") }

func (c carrying) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	mine := c.upper(spec.SandboxID)
	if _, err := os.Stat(mine); errors.Is(err, fs.ErrNotExist) {
		if err := os.CopyFS(mine, os.DirFS(spec.Workspace.Upper)); err != nil {
			return driver.Lease{}, err
		}
	}
	spec.Workspace.Upper = mine
	lease, err := c.Driver.Acquire(ctx, spec)
	lease.Traits = c.Traits()
	return lease, err
}

func (c carrying) Files(lease driver.Lease) driver.Files {
	return files{c, lease, feed.From(local.Files{Dir: filepath.Dir(c.upper(lease.SandboxID))})}
}

func (c carrying) Forget(_ context.Context, lease driver.Lease) error {
	return os.RemoveAll(filepath.Dir(c.upper(lease.SandboxID)))
}

// files answer while the place runs.
type files struct {
	of    carrying
	lease driver.Lease
	feed.Source
}

func (f files) answers(ctx context.Context) error {
	if f.of.mute.Load() {
		return driver.ErrUnreachable
	}
	return f.of.Attach(ctx, f.lease)
}

func (f files) List(ctx context.Context) (io.ReadCloser, error) {
	if err := f.answers(ctx); err != nil {
		return nil, err
	}
	return f.Source.List(ctx)
}

func (f files) Content(ctx context.Context, path string) (io.ReadCloser, error) {
	if err := f.answers(ctx); err != nil {
		return nil, err
	}
	return f.Source.Content(ctx, path)
}

func (f files) Refs(ctx context.Context) (map[string]string, error) {
	if err := f.answers(ctx); err != nil {
		return nil, err
	}
	return f.Source.Refs(ctx)
}

func (f files) Size(ctx context.Context) (changes, home int64, err error) {
	if err := f.answers(ctx); err != nil {
		return 0, 0, err
	}
	return f.Source.Size(ctx)
}

// plain is the same without a way to ask: a driver as it once was.
type plain struct{ driver.Driver }

// farWorld is a world with one sandbox, fix, whose files are far; branch is its.
type farWorld struct {
	*world
	far    carrying
	branch string
	id     string
}

func newFarWorld(t *testing.T, lists bool) *farWorld {
	t.Helper()
	return newFarWorldOf(t, func(far carrying) driver.Driver {
		if lists {
			return far
		}
		return plain{far}
	})
}

// newFarWorldOf is newFarWorld with a driver made of the one that carries.
func newFarWorldOf(t *testing.T, made func(carrying) driver.Driver) *farWorld {
	t.Helper()
	w := &farWorld{world: newWorld(t)}
	w.far = carrying{Driver: w.Drivers.Get("fake"), dir: t.TempDir(), mute: new(atomic.Bool)}
	d := made(w.far)
	drivers := driver.NewSet(driver.Entry{Name: "fake", Make: func() driver.Driver { return d }, Default: true})
	w.keepers = &inprocess.Keepers{Drivers: drivers}
	t.Cleanup(w.keepers.Close)
	w.Engine = engine.New(engine.Options{Store: w.store, Drivers: drivers, Keepers: w.keepers})
	box, err := w.Create(gittest.Context(t), engine.CreateRequest{Dir: w.dir, Name: "fix"})
	if err != nil {
		t.Fatal(err)
	}
	w.branch, w.id = box.Branch, box.ID
	return w
}

// behind changes a file in the machine, as a process in the background does.
func (w *farWorld) behind(t *testing.T, name, content string) {
	t.Helper()
	gittest.Write(t, w.far.upper(w.id), name, content)
}

func (w *farWorld) stop(t *testing.T) {
	t.Helper()
	if _, err := w.Stop(gittest.Context(t), engine.StopRequest{Dir: w.dir, Name: "fix"}); err != nil {
		t.Fatal(err)
	}
}

func (w *farWorld) write(t *testing.T, name, content string) (*sandbox.Iteration, error) {
	t.Helper()
	it, _, err := w.Write(gittest.Context(t), engine.WriteRequest{Dir: w.dir, Name: "fix", Path: name, Content: strings.NewReader(content)})
	return it, err
}

func (w *farWorld) show(t *testing.T, of string) string {
	t.Helper()
	return gittest.Git(t, w.dir, "show", of)
}

// isStopped checks that no command has started the sandbox.
func (w *farWorld) isStopped(t *testing.T) {
	t.Helper()
	all, err := w.List(gittest.Context(t), w.dir, false)
	if err != nil || len(all) != 1 || all[0].State != sandbox.Stopped {
		t.Fatalf("after a look at it the sandbox is not stopped: %+v, %v", all, err)
	}
}

// diff is the output of Diff.
func (w *farWorld) diff(t *testing.T) (string, error) {
	t.Helper()
	var out strings.Builder
	_, err := w.Diff(gittest.Context(t), engine.DiffRequest{Dir: w.dir, Name: "fix", Stdout: &out, Stderr: &out})
	return out.String(), err
}

// A change in the place's own machine is committed, and the host's files from the
// beginning are not mistaken for it, also after a stop.
func TestFarFilesAreCommitted(t *testing.T) {
	w := newFarWorld(t, true)
	if it, err := w.write(t, "a.txt", "one\n"); err != nil || it.Changed != 1 || w.show(t, w.branch+":a.txt") != "one" {
		t.Fatalf("%+v, %v", it, err)
	}
	w.stop(t)
	w.behind(t, "late.txt", "late\n")
	if out, err := w.diff(t); err != nil || strings.Contains(out, "+late") || !strings.Contains(out, "+one") {
		t.Fatalf("a stopped sandbox differs by\n%s%v", out, err)
	}
	if found, err := w.Compare(gittest.Context(t), engine.CompareRequest{Dir: w.dir, Names: []string{"fix"}}); err != nil || len(found) != 1 || found[0].Files != 1 {
		t.Fatalf("a stopped sandbox compares as %+v, %v", found, err)
	}
	w.isStopped(t)
	if it, err := w.write(t, "b.txt", "two\n"); err != nil || w.show(t, w.branch+":a.txt") != "one" || w.show(t, w.branch+":late.txt") != "late" {
		t.Fatalf("after a stop: %+v, %v", it, err)
	}
	taken, err := w.TakeSnapshot(gittest.Context(t), w.dir, "fix", "")
	if err != nil {
		t.Fatal(err)
	}
	if it, err := w.write(t, "a.txt", "three\n"); err != nil || w.show(t, w.branch+":a.txt") != "three" {
		t.Fatalf("after a snapshot: %+v, %v", it, err)
	}
	if _, err := w.RestoreSnapshot(gittest.Context(t), engine.RestoreRequest{Dir: w.dir, Name: "fix", Snapshot: taken.Name, Stop: true}); err != nil {
		t.Fatal(err)
	}
	if it, err := w.write(t, "c.txt", "four\n"); err != nil || w.show(t, w.branch+":a.txt") != "one" || w.show(t, w.branch+":late.txt") != "late" {
		t.Fatalf("after a restore: %+v, %v", it, err)
	}
	w.behind(t, "last.txt", "last\n")
	w.stop(t)
	result, err := w.Merge(gittest.Context(t), engine.MergeRequest{Dir: w.dir, Name: "fix", Delete: true})
	if err != nil || !result.Deleted || w.show(t, "HEAD:last.txt") != "last" {
		t.Fatalf("%+v, %v", result, err)
	}
	if _, err := os.Stat(w.far.upper(w.id)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its machine keeps the files: %v", err)
	}
}

// refuses checks that every use case that would lose the machine's changes
// refuses, and that the sandbox and its branch stay as they are.
func (w *farWorld) refuses(t *testing.T) {
	t.Helper()
	tip := gittest.Git(t, w.dir, "rev-parse", w.branch)
	for _, deletes := range []bool{true, false} {
		if result, err := w.Merge(gittest.Context(t), engine.MergeRequest{Dir: w.dir, Name: "fix", Delete: deletes}); fault.KindOf(err) != fault.Unavailable || result.Deleted || fault.HintOf(err) == "" {
			t.Errorf("merge (delete %v): %+v, %v", deletes, result, err)
		}
	}
	if result, err := w.Delete(gittest.Context(t), engine.DeleteRequest{Dir: w.dir, Name: "fix"}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("delete: %+v, %v", result, err)
	}
	all, err := w.List(gittest.Context(t), w.dir, false)
	if err != nil || len(all) != 1 {
		t.Fatalf("it is gone: %+v, %v", all, err)
	}
	if now := gittest.Git(t, w.dir, "rev-parse", w.branch); now != tip {
		t.Errorf("the branch moved to %s:\n%s", now, gittest.Git(t, w.dir, "show", "--stat", now))
	}
}

// A machine that does not list its files does not count as an empty one.
func TestFarFilesThatCannotBeAsked(t *testing.T) {
	w := newFarWorld(t, false)
	if it, err := w.write(t, "a.txt", "one\n"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a write that no commit has: %+v, %v", it, err)
	}
	w.refuses(t)
	if out, err := w.diff(t); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("diff: %q, %v", out, err)
	}
	w.stop(t)
	if out, err := w.diff(t); err != nil {
		t.Errorf("diff of a stopped one: %q, %v", out, err)
	}
	w.isStopped(t)
	w.refuses(t)
	if usage, err := w.DiskUsage(gittest.Context(t), w.dir, false); err != nil || len(usage.Sandboxes) != 1 || !usage.Sandboxes[0].Unknown {
		t.Errorf("df: %+v, %v", usage.Sandboxes, err)
	}
	result, err := w.Delete(gittest.Context(t), engine.DeleteRequest{Dir: w.dir, Name: "fix", Force: true})
	if err != nil || result.Until != nil {
		t.Errorf("delete --force: %+v, %v", result, err)
	}
}

// The same goes for one that no longer answers: the host's files are as old as
// its beginning, and revert nothing.
func TestFarFilesThatFallSilent(t *testing.T) {
	w := newFarWorld(t, true)
	if _, err := w.write(t, "a.txt", "one\n"); err != nil {
		t.Fatal(err)
	}
	w.behind(t, "late.txt", "late\n")
	w.far.mute.Store(true)
	w.refuses(t)
	if out, err := w.diff(t); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("diff: %q, %v", out, err)
	}
	w.far.mute.Store(false)
	if out, err := w.diff(t); err != nil || !strings.Contains(out, "+late") {
		t.Errorf("asked again: %q, %v", out, err)
	}
}
