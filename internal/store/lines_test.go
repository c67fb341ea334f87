package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

func step(number int) sandbox.Iteration {
	return sandbox.Iteration{
		Version: sandbox.RecordVersion, Number: number, Cycle: 2, Kind: "exec", Message: "say\nmore", Command: "make 'x y'",
		Commit: strings.Repeat("f", 40), ExitCode: 3, Signal: "KILL", TimedOut: true,
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Duration: 1234567, Changed: 5, Notes: []string{"a", "b\n"},
	}
}

func appendStep(t *testing.T, s *store.Store, id string, number int) {
	t.Helper()
	one := step(number)
	if err := s.AppendIteration(id, &one); err != nil {
		t.Fatal(err)
	}
}

func steps(t *testing.T, s *store.Store, id string) []sandbox.Iteration {
	t.Helper()
	all, err := s.Iterations(id)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestIterationsRoundTrip(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	if got := steps(t, s, id); got != nil {
		t.Errorf("before the first: %+v", got)
	}
	appendStep(t, s, id, 1)
	appendStep(t, s.Durable(true), id, 2)
	if diff := cmp.Diff([]sandbox.Iteration{step(1), step(2)}, steps(t, s, id)); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}

// A crash, or a full disk, can stop a write at any byte. Wherever it did, the
// lines before count, and so do those appended after.
func TestTornLine(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	log := filepath.Join(s.SandboxDir(id), "iterations.jsonl")
	appendStep(t, s, id, 1)
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	appendStep(t, s, id, 2)
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(before); cut <= len(whole); cut++ {
		if err := os.WriteFile(log, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := []sandbox.Iteration{step(1)}
		if cut >= len(whole)-1 { // only the newline is missing
			want = append(want, step(2))
		}
		if diff := cmp.Diff(want, steps(t, s, id)); diff != "" {
			t.Fatalf("cut at %d (- want, + got):\n%s", cut, diff)
		}
		appendStep(t, s, id, 3)
		if diff := cmp.Diff(append(want, step(3)), steps(t, s, id)); diff != "" {
			t.Fatalf("cut at %d, then one more (- want, + got):\n%s", cut, diff)
		}
	}
}

// Many clients of one sandbox append at once.
func TestAppendRaces(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	const clients, each = 10, 20
	var wait sync.WaitGroup
	for client := range clients {
		wait.Go(func() {
			for i := range each {
				one := step(client*each + i)
				if err := s.AppendIteration(id, &one); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	seen := map[int]bool{}
	for _, one := range steps(t, s, id) {
		seen[one.Number] = true
	}
	if len(seen) != clients*each {
		t.Errorf("%d of %d lines", len(seen), clients*each)
	}
}

func cycleIDs(t *testing.T, s *store.Store, id string, most int) []int {
	t.Helper()
	cycles, err := s.Cycles(t.Context(), id, most)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, one := range cycles {
		ids = append(ids, one.ID)
	}
	return ids
}

func TestCycles(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	if got := cycleIDs(t, s, id, 0); got != nil {
		t.Errorf("before the first: %v", got)
	}
	var want []int
	for i := range 12 { // past 10, where names would sort wrongly
		cycle := sandbox.Cycle{Kind: "exec", Command: fmt.Sprint(i), State: sandbox.Pending}
		if err := s.BeginCycle(t.Context(), id, &cycle); err != nil {
			t.Fatal(err)
		}
		if cycle.ID != i+1 || cycle.Version != sandbox.RecordVersion {
			t.Errorf("cycle %d got the number %d and version %d", i+1, cycle.ID, cycle.Version)
		}
		want = append(want, cycle.ID)
	}
	for _, most := range []int{0, 12, 100} {
		if diff := cmp.Diff(want, cycleIDs(t, s, id, most)); diff != "" {
			t.Errorf("at most %d (- want, + got):\n%s", most, diff)
		}
	}
	if diff := cmp.Diff([]int{10, 11, 12}, cycleIDs(t, s, id, 3)); diff != "" {
		t.Errorf("the newest three (- want, + got):\n%s", diff)
	}

	changed := sandbox.Cycle{
		ID: 5, LeaseID: "l", Kind: "shell", Command: "sh", Message: "m", State: sandbox.CycleFailed, Problem: "p",
		RequestedAt: time.Unix(1, 0).UTC(), StartedAt: time.Unix(2, 0).UTC(), CompletedAt: time.Unix(3, 0).UTC(),
		ExitCode: 7, TimedOut: true, Holder: sandbox.Process{PID: 1, StartTime: 2, Boot: "b"},
	}
	if err := s.SaveCycle(id, &changed); err != nil {
		t.Fatal(err)
	}
	all, err := s.Cycles(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(changed, all[4]); diff != "" {
		t.Errorf("the saved one (- want, + got):\n%s", diff)
	}
	noLitter(t, s.SandboxDir(id))
}

// A client that dies between taking a number and writing the record leaves an
// empty file: the number is used up, no reader stumbles over it, and it counts as
// a dead client's cycle, so that it is cleared away.
func TestCycleOfADeadClient(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	if err := s.BeginCycle(t.Context(), id, &sandbox.Cycle{}); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(s.SandboxDir(id), "cycles", "00000002.jsonl"), "")
	next := sandbox.Cycle{}
	if err := s.BeginCycle(t.Context(), id, &next); err != nil || next.ID != 3 {
		t.Errorf("number %d, %v", next.ID, err)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, cycleIDs(t, s, id, 0)); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}

func TestBeginCycleRaces(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	const racers = 50
	numbers := make([]int, racers)
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range racers {
		wait.Go(func() {
			<-start
			cycle := sandbox.Cycle{Command: fmt.Sprint(i)}
			if err := s.BeginCycle(t.Context(), id, &cycle); err != nil {
				t.Error(err)
			}
			numbers[i] = cycle.ID
		})
	}
	close(start)
	wait.Wait()
	cycles, err := s.Cycles(t.Context(), id, 0)
	if err != nil || len(cycles) != racers {
		t.Fatalf("%d of %d cycles, %v", len(cycles), racers, err)
	}
	for i, number := range numbers {
		if number < 1 || number > racers || cycles[number-1].Command != fmt.Sprint(i) {
			t.Errorf("racer %d has the number %d, which is not its own", i, number)
		}
	}
}
