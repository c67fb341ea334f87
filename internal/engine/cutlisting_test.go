package engine_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// breaking is carrying over a link that ends once, in the middle of a listing.
type breaking struct {
	carrying
	left *atomic.Int64 // bytes of listings that still come; below zero: all
}

func (b breaking) Files(lease driver.Lease) driver.Files {
	return cutFiles{b.carrying.Files(lease).(files), b.left}
}

type cutFiles struct {
	files
	left *atomic.Int64
}

func (f cutFiles) List(ctx context.Context) (io.ReadCloser, error) {
	stream, err := f.files.List(ctx)
	if err != nil {
		return nil, err
	}
	return cutStream{stream, f.left}, nil
}

type cutStream struct {
	io.ReadCloser
	left *atomic.Int64
}

func (s cutStream) Read(p []byte) (int, error) {
	left := s.left.Load()
	if left < 0 {
		return s.ReadCloser.Read(p)
	}
	if left == 0 {
		s.left.Store(-1) // once: the next request goes over another link
		return 0, driver.ErrUnreachable
	}
	n, err := s.ReadCloser.Read(p[:min(int64(len(p)), left)])
	s.left.Add(-int64(n))
	return n, err
}

// A commit whose listing is cut off fails and moves no branch, wherever the cut is;
// the next one has its changes, once.
func TestACutListingIsCommittedByTheNext(t *testing.T) {
	left := new(atomic.Int64)
	left.Store(-1)
	w := newFarWorldOf(t, func(far carrying) driver.Driver { return breaking{far, left} })
	const step = 11
	failed := 0
	for round := 1; ; round++ { // with the same files: the listing keeps its length
		tip, bytes, content := gittest.Git(t, w.dir, "rev-parse", w.branch), int64(round-1)*step, fmt.Sprintln("round", round)
		left.Store(bytes)
		_, err := w.write(t, "cut.txt", content)
		broke := left.Swap(-1) < 0
		if err != nil {
			failed++
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("cut after %d bytes: %v", bytes, err)
			}
			if now := gittest.Git(t, w.dir, "rev-parse", w.branch); now != tip {
				t.Errorf("cut after %d bytes, the branch moved to\n%s", bytes, gittest.Git(t, w.dir, "show", "--stat", now))
			}
		}
		if _, err := w.write(t, "after.txt", content); err != nil {
			t.Fatalf("after a cut after %d bytes: %v", bytes, err)
		}
		for _, file := range []string{"cut.txt", "after.txt"} {
			if commits := strings.Fields(gittest.Git(t, w.dir, "log", "--format=%H", w.branch, "--", file)); len(commits) != round {
				t.Errorf("cut after %d bytes: %s is in %d commits, want one for each of %d rounds", bytes, file, len(commits), round)
			}
			if got := w.show(t, w.branch+":"+file) + "\n"; got != content {
				t.Errorf("cut after %d bytes: the branch has %q, want %q", bytes, got, content)
			}
		}
		if !broke || round == 100 {
			t.Logf("%d of %d commits were cut off", failed, round)
			break
		}
	}
	if failed < 3 {
		t.Errorf("%d commits failed: the test shows little", failed)
	}
}
