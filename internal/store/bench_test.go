package store_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// The cost of one command in records: a cycle's transitions and their events.
func BenchmarkRecords(b *testing.B) {
	s, err := store.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	id, err := s.Claim("/repo/.git", "box")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("emit", func(b *testing.B) {
		for b.Loop() {
			if err := s.Emit(b.Context(), &sandbox.Event{Type: sandbox.EventCycleExecuting, Cycle: 1}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cycle", func(b *testing.B) {
		for b.Loop() {
			cycle := sandbox.Cycle{State: sandbox.Leasing}
			if err := s.BeginCycle(b.Context(), id, &cycle); err != nil {
				b.Fatal(err)
			}
			for _, state := range []sandbox.CycleState{sandbox.Executing, sandbox.PostProcessing, sandbox.Completed} {
				cycle.State = state
				if err := s.SaveCycle(id, &cycle); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
