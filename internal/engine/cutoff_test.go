package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/fake"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// cut is a use case that is cut off before one of the records that it writes: by
// the death of its process and of everything that runs, or by a disk that is full
// for a while. after goes on working, like a user who knows nothing of it, and
// finds the state before or the intended one.
type cut struct {
	name   string
	before func(*testing.T, context.Context, *world)
	run    func(context.Context, *world) error
	after  func(*testing.T, context.Context, *world)
}

func fixed(t *testing.T, ctx context.Context, w *world) {
	t.Helper()
	if _, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"}); err != nil {
		t.Fatal(err)
	}
	w.put(t, ctx, "a.txt", "one\n")
}

// exists reports whether fix is there.
func (w *world) exists(t *testing.T, ctx context.Context) bool {
	t.Helper()
	all, err := w.List(ctx, w.dir, false)
	if err != nil || len(all) > 1 {
		t.Fatalf("list: %+v, %v", all, err)
	}
	return len(all) == 1
}

// finish puts a file into fix and merges it: it works as any other.
func (w *world) finish(t *testing.T, ctx context.Context) {
	t.Helper()
	w.put(t, ctx, "last.txt", "last\n")
	if _, err := w.Merge(ctx, engine.MergeRequest{Dir: w.dir, Name: "fix", Delete: true}); err != nil {
		t.Fatal(err)
	}
	w.clean(t, ctx)
	if got := gittest.Git(t, w.dir, "show", "HEAD:last.txt"); got != "last" {
		t.Errorf("what was merged is %q", got)
	}
}

// clean checks that nothing is left of fix.
func (w *world) clean(t *testing.T, ctx context.Context) {
	t.Helper()
	if w.exists(t, ctx) {
		t.Error("it is still listed")
	}
	if left := w.machine.Places(); len(left) > 0 {
		t.Errorf("places are left: %v", left)
	}
	if left := gittest.Git(t, w.dir, "branch", "--list", "litterbox/*"); left != "" {
		t.Errorf("branches are left: %s", left)
	}
}

// holds checks that fix can be used and that its branch has the same content.
func (w *world) holds(t *testing.T, ctx context.Context, path string, either ...string) {
	t.Helper()
	if _, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	inside := w.file(t, ctx, path)
	if of := gittest.Git(t, w.dir, "show", w.one(t).Branch+":"+path); of+"\n" != inside {
		t.Errorf("the branch has %q, inside is %q", of, inside)
	}
	for _, one := range either {
		if inside == one {
			return
		}
	}
	t.Errorf("%s holds %q, none of %q", path, inside, either)
}

var cuts = []cut{
	{
		name:   "create",
		before: func(*testing.T, context.Context, *world) {},
		run: func(ctx context.Context, w *world) error {
			_, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"})
			return err
		},
		after: func(t *testing.T, ctx context.Context, w *world) {
			_, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}})
			if err != nil {
				if _, again := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"}); again != nil {
					t.Fatalf("it can be neither used (%v) nor made (%v)", err, again)
				}
			}
			w.finish(t, ctx)
		},
	},
	{
		name:   "write",
		before: fixed,
		run: func(ctx context.Context, w *world) error {
			_, _, err := w.Write(ctx, engine.WriteRequest{Dir: w.dir, Name: "fix", Path: "a.txt", Content: strings.NewReader("two\n")})
			return err
		},
		after: func(t *testing.T, ctx context.Context, w *world) {
			w.holds(t, ctx, "a.txt", "one\n", "two\n")
			w.finish(t, ctx)
		},
	},
	{
		name: "update",
		before: func(t *testing.T, ctx context.Context, w *world) {
			fixed(t, ctx, w)
			w.hostCommits(t, "theirs.txt", "the host's\n")
		},
		run: func(ctx context.Context, w *world) error {
			_, err := w.Update(ctx, engine.UpdateRequest{Dir: w.dir, Name: "fix"})
			return err
		},
		after: func(t *testing.T, ctx context.Context, w *world) {
			if _, err := w.Update(ctx, engine.UpdateRequest{Dir: w.dir, Name: "fix"}); err != nil {
				t.Fatal(err)
			}
			w.holds(t, ctx, "theirs.txt", "the host's\n")
			w.holds(t, ctx, "a.txt", "one\n")
			w.finish(t, ctx)
		},
	},
	{
		name:   "stop",
		before: fixed,
		run: func(ctx context.Context, w *world) error {
			_, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "fix"})
			return err
		},
		after: func(t *testing.T, ctx context.Context, w *world) {
			w.holds(t, ctx, "a.txt", "one\n")
			w.finish(t, ctx)
		},
	},
	{
		name:   "merge",
		before: fixed,
		run: func(ctx context.Context, w *world) error {
			_, err := w.Merge(ctx, engine.MergeRequest{Dir: w.dir, Name: "fix", Delete: true})
			return err
		},
		after: func(t *testing.T, ctx context.Context, w *world) {
			if w.exists(t, ctx) {
				if _, err := w.Merge(ctx, engine.MergeRequest{Dir: w.dir, Name: "fix", Delete: true}); err != nil {
					if _, deleteErr := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix"}); deleteErr != nil {
						t.Fatalf("it can be neither merged (%v) nor deleted (%v)", err, deleteErr)
					}
				}
			}
			w.clean(t, ctx)
			if got := gittest.Git(t, w.dir, "show", "HEAD:a.txt"); got != "one" {
				t.Errorf("what was merged is %q", got)
			}
		},
	},
	{
		name:   "delete",
		before: fixed,
		run: func(ctx context.Context, w *world) error {
			_, err := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix", Force: true})
			return err
		},
		after: func(t *testing.T, ctx context.Context, w *world) {
			if w.exists(t, ctx) {
				if _, err := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix", Force: true}); err != nil && fault.KindOf(err) != fault.NotFound {
					t.Fatal(err)
				}
			}
			w.clean(t, ctx)
			if _, _, err := w.Restore(ctx, w.dir, "fix"); err != nil {
				t.Fatal(err)
			}
			w.holds(t, ctx, "a.txt", "one\n")
		},
	},
}

// The child of TestCutOffAtEachRecord learns from these which one to run where,
// and what happens at which record.
const (
	cutName = "LITTERBOX_TEST_CUT"
	cutStep = "LITTERBOX_TEST_CUT_STEP"
	cutDir  = "LITTERBOX_TEST_CUT_DIR"
	cutHow  = "LITTERBOX_TEST_CUT_HOW"
)

// reached begins the child's message about the first record that was not written.
const reached = "cut off before "

// A process that is killed before any of its records, with its keepers and all
// places, or that meets a full disk there, loses nothing and leaves no obstacle
// for the next process. Package test/crash does it to the real program, at each
// system call; here it is each record of a use case, and the usual run takes a
// sample of them: LITTERBOX_TEST_LONG takes all.
func TestCutOffAtEachRecord(t *testing.T) {
	if name := os.Getenv(cutName); name != "" {
		runCut(t, name)
		return
	}
	for how, stride := range map[string]int{"killed": 6, "full disk": 9} {
		if os.Getenv("LITTERBOX_TEST_LONG") != "" {
			stride = 1
		}
		for _, c := range cuts {
			t.Run(how+" "+c.name, func(t *testing.T) {
				gittest.Home(t)
				ctx := gittest.Context(t)
				for step := 1; ; step += stride {
					base := t.TempDir()
					child := exec.Command(os.Args[0], "-test.run=^TestCutOffAtEachRecord$")
					child.Env = append(os.Environ(), cutName+"="+c.name, cutStep+"="+strconv.Itoa(step), cutDir+"="+base, cutHow+"="+how)
					said, err := child.CombinedOutput()
					_, before, found := bytes.Cut(said, []byte(reached))
					if !found && err == nil && step > 1 {
						return // it has fewer records
					}
					var ended *exec.ExitError
					killed := errors.As(err, &ended) && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
					if !found || killed != (how == "killed") || !killed && err != nil {
						t.Fatalf("step %d: %v\n%s", step, err, said)
					}
					before, _, _ = bytes.Cut(before, []byte("\n"))
					t.Run(fmt.Sprintf("%d %s", step, filepath.Base(string(before))), func(t *testing.T) {
						c.after(t, ctx, newWorldAt(t, base, fake.Options{}))
					})
				}
			})
		}
	}
}

// runCut runs a use case in this process, which is cut off at one of its records.
func runCut(t *testing.T, name string) {
	step, err := strconv.ParseInt(os.Getenv(cutStep), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	w, ctx := newWorldAt(t, os.Getenv(cutDir), fake.Options{}), gittest.Context(t)
	at := slices.IndexFunc(cuts, func(c cut) bool { return c.name == name })
	cuts[at].before(t, ctx, w)
	var count atomic.Int64
	w.store.Before = func(path string) error {
		switch n := count.Add(1); {
		case n < step:
			return nil
		case n == step:
			fmt.Println(reached + path)
		}
		if os.Getenv(cutHow) == "killed" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it has
		}
		return syscall.ENOSPC
	}
	if err := cuts[at].run(ctx, w); err != nil && count.Load() < step {
		t.Fatal(err)
	}
}
