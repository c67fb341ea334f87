package engine_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// begun is a world with the sandbox fix.
func begun(t *testing.T) (*world, context.Context) {
	t.Helper()
	w, ctx := newWorld(t), gittest.Context(t)
	if _, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"}); err != nil {
		t.Fatal(err)
	}
	return w, ctx
}

// put writes a file in the sandbox.
func (w *world) put(t *testing.T, ctx context.Context, path, content string) *sandbox.Iteration {
	t.Helper()
	it, _, err := w.Write(ctx, engine.WriteRequest{Dir: w.dir, Name: "fix", Path: path, Content: strings.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// file is the content of a path inside.
func (w *world) file(t *testing.T, ctx context.Context, path string) string {
	t.Helper()
	var got bytes.Buffer
	if err := w.Read(ctx, w.dir, "fix", path, &got); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return got.String()
}

func TestMilestonesAndDiffs(t *testing.T) {
	w, ctx := begun(t)
	w.put(t, ctx, "a.txt", "one\n")
	w.put(t, ctx, "a.txt", "two\n")
	made, err := w.Milestone(ctx, w.dir, "fix", "Count to two")
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, ctx, "b.txt", "three\n")
	diff := func(since string) string {
		t.Helper()
		var out bytes.Buffer
		if code, err := w.Diff(ctx, engine.DiffRequest{Dir: w.dir, Name: "fix", Since: since, Args: []string{"--name-only"}, Stdout: &out, Stderr: &out}); err != nil || code != 0 {
			t.Errorf("diff since %q: exit %d, %v", since, code, err)
		}
		return out.String()
	}
	if got := diff(""); got != "a.txt\nb.txt\n" {
		t.Errorf("since the base:\n%s", got)
	}
	if got := diff("milestone"); got != "b.txt\n" {
		t.Errorf("since the milestone:\n%s", got)
	}
	log, err := w.Log(ctx, w.dir, "fix")
	if err != nil || len(log) != 4 {
		t.Fatalf("log: %v, %v", log, err)
	}
	if !slices.ContainsFunc(log, func(it sandbox.Iteration) bool { return it.Number == made.Number && it.Kind == "milestone" }) {
		t.Errorf("the log has no milestone %d: %+v", made.Number, log)
	}
	result, err := w.Merge(ctx, engine.MergeRequest{Dir: w.dir, Name: "fix", History: engine.HistoryOne})
	if err != nil || !result.Landed || result.Deleted {
		t.Fatalf("apply: %+v, %v", result, err)
	}
	if got := gittest.Git(t, w.dir, "log", "--format=%s", "--no-merges"); strings.Count(got, "\n") != 1 {
		t.Errorf("one commit should have landed:\n%s", got)
	}
	if got := gittest.Git(t, w.dir, "show", "HEAD:b.txt"); got != "three" {
		t.Errorf("b.txt has landed as %q", got)
	}
}

func TestPauseAndResume(t *testing.T) {
	w, ctx := begun(t)
	request := engine.PauseRequest{Dir: w.dir, Name: "fix"}
	all, err := w.Pause(ctx, request)
	if err != nil || len(all) != 1 || !all[0].Changed || w.one(t).State != sandbox.Paused {
		t.Fatalf("pause: %+v, %v, and it is %s", all, err, w.one(t).State)
	}
	if _, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}}); fault.HintOf(err) == "" {
		t.Errorf("exec in what a human has paused: %v", err)
	}
	if all, err = w.Pause(ctx, request); err != nil || all[0].Changed {
		t.Errorf("the second pause: %+v, %v", all, err)
	}
	if all, err = w.Resume(ctx, request); err != nil || !all[0].Changed {
		t.Errorf("resume: %+v, %v", all, err)
	}
	if done, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}}); err != nil || done.Exit.Code != 0 {
		t.Errorf("exec after it: %+v, %v", done.Exit, err)
	}
}

func TestLimitsOfOneThatRuns(t *testing.T) {
	w, ctx := begun(t)
	memory := func(set ...string) sandbox.Limit {
		t.Helper()
		view, err := w.Limits(ctx, engine.LimitsRequest{Dir: w.dir, Name: "fix", Set: set})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(view.Limits, func(l sandbox.Limit) bool { return l.Name == sandbox.LimitMemory })
		return view.Limits[at]
	}
	before := memory()
	if got := memory("memory=64MiB"); got.Value != "64MiB" || got.By != "memory of the test" {
		t.Errorf("memory is limited to %s by %q", got.Value, got.By)
	}
	if _, err := w.Limits(ctx, engine.LimitsRequest{Dir: w.dir, Name: "fix", Set: []string{"memory=much"}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a limit of much: %v", err)
	}
	if got := memory("memory=default"); got != before {
		t.Errorf("the default is %+v, and was %+v", got, before)
	}
}

func TestStopAndStart(t *testing.T) {
	w, ctx := begun(t)
	w.put(t, ctx, "a.txt", "kept\n")
	if _, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "fix"}); err != nil || w.one(t).State != sandbox.Stopped {
		t.Fatalf("stop: %v, and it is %s", err, w.one(t).State)
	}
	if left := w.machine.Places(); len(left) > 0 {
		t.Errorf("places are left: %v", left)
	}
	if _, err := w.Start(ctx, w.dir, "fix", false); err != nil || w.one(t).State != sandbox.Running {
		t.Errorf("start: %v, and it is %s", err, w.one(t).State)
	}
	if got := w.file(t, ctx, "a.txt"); got != "kept\n" {
		t.Errorf("a.txt holds %q", got)
	}
}

func TestSnapshotsRestoreAndFork(t *testing.T) {
	w, ctx := begun(t)
	w.put(t, ctx, "a.txt", "before\n")
	taken, err := w.TakeSnapshot(ctx, w.dir, "fix", "good")
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, ctx, "a.txt", "after\n")
	forked, err := w.Fork(ctx, engine.ForkRequest{Dir: w.dir, Name: "fix", New: "other", At: "good"})
	if err != nil || len(forked.Forks) != 1 {
		t.Fatalf("fork: %+v, %v", forked, err)
	}
	if got := gittest.Git(t, w.dir, "show", forked.Forks[0].Branch+":a.txt"); got != "before" {
		t.Errorf("the fork has %q", got)
	}
	back, err := w.RestoreSnapshot(ctx, engine.RestoreRequest{Dir: w.dir, Name: "fix", Snapshot: taken.Name, Stop: true})
	if err != nil || !back.Exact {
		t.Fatalf("restore: %+v, %v", back, err)
	}
	if got := w.file(t, ctx, "a.txt"); got != "before\n" {
		t.Errorf("a.txt holds %q after the restore", got)
	}
	if _, err := w.RestoreSnapshot(ctx, engine.RestoreRequest{Dir: w.dir, Name: "fix", Snapshot: back.Before, Stop: true}); err != nil {
		t.Fatal(err)
	}
	if got := w.file(t, ctx, "a.txt"); got != "after\n" {
		t.Errorf("a.txt holds %q after the restore was undone", got)
	}
}

func TestDeleteAndRestore(t *testing.T) {
	w, ctx := begun(t)
	it := w.put(t, ctx, "a.txt", "work\n")
	if _, err := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix"}); err == nil {
		t.Fatal("what is not merged was deleted")
	}
	if _, err := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix", Force: true}); err != nil {
		t.Fatal(err)
	}
	if all, err := w.List(ctx, w.dir, false); err != nil || len(all) > 0 {
		t.Errorf("list: %v, %v", all, err)
	}
	restored, _, err := w.Restore(ctx, w.dir, "fix")
	if err != nil || restored.Tip != it.Commit {
		t.Fatalf("restored: %+v, %v", restored, err)
	}
	if got := w.file(t, ctx, "a.txt"); got != "work\n" {
		t.Errorf("a.txt holds %q", got)
	}
}
