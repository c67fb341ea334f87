package branch_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
)

// link counts the traffic between a machine and its host.
type link struct {
	source    feed.Source
	questions atomic.Int64
	bytes     atomic.Int64
}

func (l *link) counted(stream io.ReadCloser, err error) (io.ReadCloser, error) {
	l.questions.Add(1)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(stream, l), stream}, nil
}

func (l *link) Write(p []byte) (int, error) { l.bytes.Add(int64(len(p))); return len(p), nil }

func (l *link) List(ctx context.Context) (io.ReadCloser, error) { return l.counted(l.source.List(ctx)) }

func (l *link) Content(ctx context.Context, path string) (io.ReadCloser, error) {
	return l.counted(l.source.Content(ctx, path))
}

func (l *link) Refs(ctx context.Context) (map[string]string, error) { return l.source.Refs(ctx) }

func (l *link) Size(ctx context.Context) (changes, home int64, err error) { return l.source.Size(ctx) }

// pruningLink is a link to a machine that leaves out ignored files.
type pruningLink struct{ *link }

func (l pruningLink) ListBut(ctx context.Context, fold bool, texts [][]byte) (io.ReadCloser, error) {
	return l.counted(l.source.(feed.Pruner).ListBut(ctx, fold, texts))
}

func (l pruningLink) ListBelow(ctx context.Context, path string) (io.ReadCloser, error) {
	return l.counted(l.source.(feed.Pruner).ListBelow(ctx, path))
}

// previewed returns what a commit of a far box would be.
func previewed(t *testing.T, b *branchtest.Box, source feed.Source) branch.ImportResult {
	t.Helper()
	q := b.Request()
	w := b.Far().(feed.Workspace)
	w.Source = source
	q.Workspace, q.Preview = w, true
	result, err := branch.Import(gittest.Context(t), b.Repository, q)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestIgnoredFilesOfAMachineCostNothing(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Shell(t, dir, "mkdir -p forced && echo tracked >forced/tracked && echo /forced/ >.gitignore && git add -f . && git commit -qm rules")
	b := branchtest.New(t, dir, "fix")
	// The rule for the packages comes with the change itself.
	b.Inside("echo packages/ >>.gitignore; mkdir -p a/packages; for n in $(seq 10); do echo $n >changed-$n; done; seq 1500 | sed 's,.*,a/packages/a-rather-long-name-&,' | xargs touch")
	machine := func() *link { return &link{source: b.Far().(feed.Workspace).Source} }

	all, pruned := machine(), machine()
	want := previewed(t, b, all)
	got := previewed(t, b, pruningLink{pruned})
	if diff := cmp.Diff(want, got); diff != "" || len(got.Paths) != 11 {
		t.Fatalf("what is left out changes the commit to %q (-all +pruned):\n%s", got.Paths, diff)
	}
	if n := pruned.questions.Load(); n != 1 {
		t.Errorf("a commit of ten small files asks %d times, want once", n)
	}
	if all, pruned := all.bytes.Load(), pruned.bytes.Load(); all < 30_000 || pruned > 5_000 {
		t.Errorf("%d bytes cross with ignored files and %d without", all, pruned)
	}

	// Tracked files below an ignored directory are asked for.
	b.Inside("echo changed >forced/tracked")
	again := machine()
	got = previewed(t, b, pruningLink{again})
	if !strings.Contains(strings.Join(got.Paths, "\n"), "forced/tracked") {
		t.Errorf("a tracked file in an ignored directory is left out: %q", got.Paths)
	}
	if n := again.questions.Load(); n > 3 { // the listing, the directory, the file
		t.Errorf("one directory that was left out costs %d questions", n)
	}
}

// A machine that answers nothing for what it left out is not believed.
type forgetful struct{ pruningLink }

func (forgetful) ListBelow(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("litterbox changes below 1\nd")), nil
}

func TestWhatAMachineLeavesOutIsNeverTakenForUnchanged(t *testing.T) {
	dir := gittest.Repository(t)
	gittest.Shell(t, dir, "mkdir -p forced && echo tracked >forced/tracked && echo /forced/ >.gitignore && git add -f . && git commit -qm rules")
	b := branchtest.New(t, dir, "fix")
	b.Inside("echo changed >forced/tracked")
	q := b.Request()
	w := b.Far().(feed.Workspace)
	w.Source = forgetful{pruningLink{&link{source: w.Source}}}
	q.Workspace, q.Preview = w, true
	if _, err := branch.Import(gittest.Context(t), b.Repository, q); !errors.Is(err, workspace.ErrUnknown) {
		t.Fatalf("a commit without what was left out: %v", err)
	}
}
