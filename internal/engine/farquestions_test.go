package engine_test

import (
	"context"
	"io"
	"maps"
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// counting counts what a far machine is asked about its files.
type counting struct {
	carrying
	mu    *sync.Mutex
	asked map[string]int
}

func (c counting) Files(lease driver.Lease) driver.Files {
	return countingFiles{c.carrying.Files(lease), c}
}

func (c counting) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[what]++
}

// reset returns what was asked since the last time.
func (c counting) reset() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := maps.Clone(c.asked)
	clear(c.asked)
	return asked
}

type countingFiles struct {
	driver.Files
	of counting
}

func (f countingFiles) List(ctx context.Context) (io.ReadCloser, error) {
	f.of.count("list")
	return f.Files.List(ctx)
}

func (f countingFiles) Content(ctx context.Context, path string) (io.ReadCloser, error) {
	f.of.count("content")
	return f.Files.Content(ctx, path)
}

func (f countingFiles) Refs(ctx context.Context) (map[string]string, error) {
	f.of.count("refs")
	return f.Files.Refs(ctx)
}

// A command that has run is committed by one listing, and by contents where it has
// changed large files: that the machine answers is known.
func TestQuestionsAfterACommand(t *testing.T) {
	var far counting
	w := newFarWorldOf(t, func(c carrying) driver.Driver {
		far = counting{c, &sync.Mutex{}, map[string]int{}}
		return far
	})
	run := func() error {
		_, err := w.Exec(gittest.Context(t), engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}})
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	w.behind(t, "late.txt", "late\n")
	far.reset()
	if err := run(); err != nil || w.show(t, w.branch+":late.txt") != "late" {
		t.Fatal(err)
	}
	if asked := far.reset(); asked["list"] != 1 || asked["refs"] != 0 {
		t.Errorf("a commit asks %v", asked)
	}
	// A machine that falls silent under a command is still what the error is about.
	w.behind(t, "later.txt", "later\n")
	w.far.mute.Store(true)
	if err := run(); fault.KindOf(err) != fault.Unavailable || fault.HintOf(err) == "" {
		t.Errorf("a commit without an answer: %v, hint %q", err, fault.HintOf(err))
	}
	w.far.mute.Store(false)
	if err := run(); err != nil || w.show(t, w.branch+":later.txt") != "later" {
		t.Errorf("what the command left is not committed by the next: %v", err)
	}
}
