package engine_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// Work that may take more than a moment shows that it goes on, and that it is
// over.
func TestLongWorkIsShown(t *testing.T) {
	w := newWorld(t)
	ctx := gittest.Context(t)
	var mu sync.Mutex
	begun, ended := map[string]int{}, map[string]int{}
	w.Progress = func(label string, done, total int) {
		mu.Lock()
		defer mu.Unlock()
		if total != engine.Uncounted {
			return
		}
		if done == 0 {
			begun[label]++
		} else {
			ended[label]++
		}
	}
	for _, step := range []struct {
		shows string
		do    func() error
	}{
		{"making fix", func() error {
			_, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"})
			return err
		}},
		{"stopping fix", func() error {
			_, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "fix"})
			return err
		}},
		{"measuring what is on the disk", func() error {
			_, err := w.DiskUsage(ctx, w.dir, false)
			return err
		}},
		{"starting fix", func() error {
			var out bytes.Buffer
			_, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"echo", "hi"}, Streams: engine.Streams{Stdout: &out}})
			return err
		}},
		{"copying large", func() error {
			gittest.Write(t, w.dir, "large", "large\n")
			// The fake guest unpacks nothing.
			_, _, _ = w.Copy(ctx, engine.CopyRequest{Dir: w.dir, Name: "fix", Inside: "copy", Outside: filepath.Join(w.dir, "large")})
			return nil
		}},
		{"copying 1 file", func() error {
			_, _, _ = w.Sync(ctx, engine.SyncRequest{Place: engine.Place{Dir: w.dir, Name: "fix"}, Paths: []string{"large"}})
			return nil
		}},
		{"updating the files of fix", func() error {
			_, err := w.Path(ctx, w.dir, "fix")
			return err
		}},
		{"rewinding fix", func() error {
			_, _ = w.Rewind(ctx, engine.RewindRequest{Dir: w.dir, Name: "fix", Iteration: 1, Commits: true}) // nor does it follow
			return nil
		}},
		{"deleting fix", func() error {
			_, err := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix", Force: true})
			return err
		}},
		{"emptying the trash", func() error {
			_, err := w.EmptyTrash(ctx, engine.EmptyRequest{Dir: w.dir})
			return err
		}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.shows, err)
		}
		mu.Lock()
		if begun[step.shows] == 0 {
			t.Errorf("%q was not shown; shown were %v", step.shows, begun)
		}
		for label, times := range begun {
			if strings.TrimSpace(label) == "" || ended[label] != times {
				t.Errorf("%q began %d times and ended %d times", label, times, ended[label])
			}
		}
		mu.Unlock()
	}
}
