package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

func eventStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func seqs(t *testing.T, s *store.Store, after uint64) []uint64 {
	t.Helper()
	var got []uint64
	if err := s.Events(after, func(e sandbox.Event) bool { got = append(got, e.Seq); return true }); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEventsAreNumberedAcrossWriters(t *testing.T) {
	t.Parallel()
	s := eventStore(t)
	if got := seqs(t, s, 0); got != nil {
		t.Errorf("an empty log has %v", got)
	}
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 10 {
				if err := s.Emit(t.Context(), &sandbox.Event{Type: sandbox.EventCreated}, &sandbox.Event{Type: sandbox.EventStarted}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	got := seqs(t, s, 0)
	if len(got) != 160 {
		t.Fatalf("%d events of 160", len(got))
	}
	for i, seq := range got {
		if seq != uint64(i+1) {
			t.Fatalf("event %d has the number %d", i+1, seq)
		}
	}
	if diff := cmp.Diff([]uint64{159, 160}, seqs(t, s, 158)); diff != "" {
		t.Errorf("after 158 (-want +got):\n%s", diff)
	}
}

func TestEventsSurviveATornLine(t *testing.T) {
	t.Parallel()
	s := eventStore(t)
	if err := s.Emit(t.Context(), &sandbox.Event{Type: sandbox.EventCreated}); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(s.Root, "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.WriteString(`{"version":1,"seq":2,"ty`)
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.Emit(t.Context(), &sandbox.Event{Type: sandbox.EventStarted}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{1, 2}, seqs(t, s, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A full log moves aside; numbers go on, followers miss nothing, and the kept
// logs are bounded.
func TestEventsRotate(t *testing.T) {
	t.Parallel()
	s := eventStore(t)
	const batch, batches = 1 << 10, 60 // of 1 KiB and more: 60 MiB, eight full logs
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begun := make(chan struct{})
	followed := make(chan uint64, 1)
	go func() {
		var last uint64
		reader := s.EventReader(0)
		defer reader.Close()
		for last < 3*batch && ctx.Err() == nil {
			err := reader.Next(func(e sandbox.Event) bool {
				if e.Seq == 1 {
					close(begun)
				}
				if e.Seq != last+1 && last != 0 {
					t.Errorf("after event %d came %d", last, e.Seq)
				}
				last = e.Seq
				return last < 3*batch
			})
			if err != nil {
				t.Error(err)
				break
			}
		}
		followed <- last
	}()
	write := func(n int) {
		events := make([]*sandbox.Event, n)
		for i := range events {
			events[i] = &sandbox.Event{Type: sandbox.EventCreated, Data: map[string]string{"filler": strings.Repeat("x", 1<<10)}}
		}
		if err := s.Emit(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	<-begun
	for range 3 {
		write(batch)
	}
	if got := <-followed; got != 3*batch {
		t.Errorf("the follower saw event %d last, want %d", got, 3*batch)
	}
	for range batches - 3 {
		write(batch)
	}
	full, err := filepath.Glob(filepath.Join(s.Root, "events-*.jsonl"))
	if err != nil || len(full) == 0 || len(full) > 4 {
		t.Errorf("%d full logs are kept (%v)", len(full), err)
	}
	got := seqs(t, s, 0)
	if got[0] == 1 || got[len(got)-1] != batch*batches+1 {
		t.Errorf("kept are %d to %d", got[0], got[len(got)-1])
	}
	for i := range got[1:] {
		if got[i+1] != got[i]+1 {
			t.Fatalf("after event %d comes %d", got[i], got[i+1])
		}
	}
}

// A process that holds the log's lock delays no other for longer than it is
// willing to wait.
func TestEmitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := open(t)
	if err := s.Emit(t.Context(), &sandbox.Event{Type: sandbox.EventCreated}); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(filepath.Join(s.Root, "events.jsonl"))
	if err == nil {
		defer held.Close()
		err = lock.File(t.Context(), held)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Emit(ctx, &sandbox.Event{Type: sandbox.EventStarted}); fault.KindOf(err) != fault.Canceled {
		t.Errorf("while it is held: %v", err)
	}
}
