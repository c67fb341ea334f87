package engine_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
)

// One sandbox from its creation to its merge, without a kernel's help.
func TestWorkIsMerged(t *testing.T) {
	w := newWorld(t)
	ctx := gittest.Context(t)
	made, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	done, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"echo", "hi"}, Streams: engine.Streams{Stdout: &out}})
	if err != nil || done.Exit.Code != 0 || out.String() != "hi\n" {
		t.Errorf("exec: %v, %+v, %q", err, done.Exit, out.String())
	}
	it, _, err := w.Write(ctx, engine.WriteRequest{Dir: w.dir, Name: "fix", Path: "a.txt", Content: strings.NewReader("new\n")})
	if err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, w.dir, "show", made.Branch+":a.txt"); got != "new" {
		t.Errorf("the branch has %q", got)
	}
	if _, err := w.Merge(ctx, engine.MergeRequest{Dir: w.dir, Name: "fix", Delete: true}); err != nil {
		t.Fatal(err)
	}
	if head := gittest.Git(t, w.dir, "rev-parse", "HEAD"); head != it.Commit {
		t.Errorf("HEAD is %s after the merge, not %s", head, it.Commit)
	}
	if left := w.machine.Places(); len(left) > 0 {
		t.Errorf("places are left: %v", left)
	}
}

// A keeper that could not be started, or died on the way, leaves no sandbox.
func TestCreateWithoutAKeeper(t *testing.T) {
	for name, breakIt := range map[string]func(*world){
		"refused": func(w *world) { w.keepers.Refuse = func(keeper.Order) error { return errors.New("no processes left") } },
		"silent":  func(w *world) { w.keepers.Silent = func(keeper.Order) bool { return true } },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			breakIt(w)
			if _, err := w.Create(gittest.Context(t), engine.CreateRequest{Dir: w.dir, Name: "fix"}); err == nil {
				t.Fatal("it was created")
			}
			if all, err := w.List(gittest.Context(t), w.dir, false); err != nil || len(all) > 0 {
				t.Errorf("list: %v, %v", all, err)
			}
			if branches := gittest.Git(t, w.dir, "branch", "--list", "litterbox/*"); branches != "" {
				t.Errorf("a branch is left: %s", branches)
			}
			if left := w.machine.Places(); len(left) > 0 {
				t.Errorf("places are left: %v", left)
			}
		})
	}
}
