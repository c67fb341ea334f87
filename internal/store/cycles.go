package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// A cycle that is not over is a small file, to which its client appends a line
// at each transition; the last line counts. Those that are over are lines of
// one file, so that a sandbox that has run ten thousand commands starts the
// next as fast as the first. Nothing is replaced by rename: on ext4 that starts
// to write the file out (mount option auto_da_alloc), for records that live
// some milliseconds.
const (
	liveCycles     = "cycles"
	finishedCycles = "cycles.jsonl"
	cycleLine      = 1 << 10 // bytes that a finished cycle may take, for a first guess
)

func (s *Store) cyclesDir(id string) string { return filepath.Join(s.SandboxDir(id), liveCycles) }

// BeginCycle gives cycle the next free number and records it; of many racing
// callers each gets its own.
func (s *Store) BeginCycle(ctx context.Context, id string, cycle *sandbox.Cycle) error {
	unlock, err := s.Lock(ctx, id, "cycles")
	if err != nil {
		return err
	}
	defer unlock()
	numbers, err := cycleNumbers(s.cyclesDir(id))
	if err != nil {
		return err
	}
	finished, err := s.finished(id, 1)
	if err != nil {
		return err
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	for _, done := range finished {
		next = max(next, done.ID+1)
	}
	if err := os.Mkdir(s.cyclesDir(id), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return unavailable(err, "record a cycle")
	}
	cycle.ID = next
	return s.SaveCycle(id, cycle)
}

// SaveCycle records the state of a cycle. One that is over is written for the
// last time.
func (s *Store) SaveCycle(id string, cycle *sandbox.Cycle) error {
	cycle.Version = sandbox.RecordVersion
	clean := s.Redacts()
	cycle.Command, cycle.Message, cycle.Problem = clean.Text(cycle.Command), clean.Tokens(cycle.Message), clean.Tokens(cycle.Problem)
	path := cyclePath(s.cyclesDir(id), cycle.ID)
	if !cycle.State.Terminal() {
		return s.appendLine(path, cycle)
	}
	// Killed in between, it is in both places, and the line counts.
	if err := s.appendLine(filepath.Join(s.SandboxDir(id), finishedCycles), cycle); err != nil {
		return err
	}
	if err := ignoreMissing(os.Remove(path)); err != nil {
		return unavailable(err, "finish cycle %d", cycle.ID)
	}
	return nil
}

// LiveCycles reads the cycles that are not over, oldest first: those that run,
// and those whose client died.
func (s *Store) LiveCycles(ctx context.Context, id string) ([]sandbox.Cycle, error) {
	dir := s.cyclesDir(id)
	numbers, err := cycleNumbers(dir)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	finished, err := s.finished(id, 0)
	if err != nil {
		return nil, err
	}
	var cycles []sandbox.Cycle
	for _, number := range numbers {
		over := func(c sandbox.Cycle) bool { return c.ID == number }
		if slices.ContainsFunc(finished, over) {
			continue
		}
		data, err := process.ReadAtOnce(cyclePath(dir, number))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just ended
		}
		if err != nil {
			return nil, unavailable(err, "read cycle %d", number)
		}
		cycle, ok := lastCycle(data, number)
		if !ok {
			if cycle, ok, err = s.tornCycle(ctx, id, number); err != nil {
				return nil, err
			}
		}
		if ok {
			cycles = append(cycles, cycle)
		}
	}
	return cycles, nil
}

// lastCycle reads the last line of the cycle that no crash has torn.
func lastCycle(data []byte, number int) (cycle sandbox.Cycle, ok bool) {
	for _, line := range slices.Backward(bytes.Split(data, []byte{'\n'})) {
		if seal.Decode(line, &cycle) == nil && cycle.ID == number {
			return cycle, true
		}
		cycle = sandbox.Cycle{}
	}
	return cycle, false
}

// tornCycle looks again at a cycle without a readable line. One that is just
// beginning has a line as soon as its lock is free. Otherwise only its number is
// known, so it counts as a dead client's: its changes are taken care of.
func (s *Store) tornCycle(ctx context.Context, id string, number int) (cycle sandbox.Cycle, ok bool, err error) {
	unlock, err := s.Lock(ctx, id, "cycles")
	if err != nil {
		return cycle, false, err
	}
	defer unlock()
	data, err := process.ReadAtOnce(cyclePath(s.cyclesDir(id), number))
	if errors.Is(err, fs.ErrNotExist) {
		return cycle, false, nil // just ended
	}
	if err != nil {
		return cycle, false, unavailable(err, "read cycle %d", number)
	}
	if cycle, ok = lastCycle(data, number); !ok {
		cycle = sandbox.Cycle{Version: sandbox.RecordVersion, ID: number, Kind: "command", State: sandbox.Pending}
	}
	return cycle, true, nil
}

// Cycles reads the newest most cycles, oldest first; 0 means all.
func (s *Store) Cycles(ctx context.Context, id string, most int) ([]sandbox.Cycle, error) {
	live, err := s.LiveCycles(ctx, id)
	if err != nil {
		return nil, err
	}
	cycles, err := s.finished(id, most)
	if err != nil {
		return nil, err
	}
	cycles = append(cycles, live...)
	slices.SortStableFunc(cycles, func(a, b sandbox.Cycle) int { return cmp.Compare(a.ID, b.ID) })
	// One that ended between the two reads is in both.
	cycles = slices.CompactFunc(cycles, func(a, b sandbox.Cycle) bool { return a.ID == b.ID })
	if most > 0 && len(cycles) > most {
		cycles = cycles[len(cycles)-most:]
	}
	return cycles, nil
}

// finished reads cycles that are over, as they ended; at least the newest most of
// them, 0 means all.
func (s *Store) finished(id string, most int) ([]sandbox.Cycle, error) {
	path := filepath.Join(s.SandboxDir(id), finishedCycles)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err, "read the cycles %q", path)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, unavailable(err, "read the cycles %q", path)
	}
	for tail := int64(cycleLine * (most + 1)); ; tail *= 4 {
		from := max(0, info.Size()-tail)
		if most == 0 {
			from = 0
		}
		data, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
		if err != nil {
			return nil, unavailable(err, "read the cycles %q", path)
		}
		var cycles []sandbox.Cycle
		for line := range bytes.Lines(data) {
			var one sandbox.Cycle
			if seal.Decode(line, &one) == nil && one.ID > 0 {
				cycles = append(cycles, one)
			} // else torn by a crash, or by the starting point
		}
		if from == 0 || len(cycles) >= most {
			return cycles, nil
		}
	}
}

func cyclePath(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("%08d.jsonl", number))
}

func cycleNumbers(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err, "list cycles")
	}
	var numbers []int
	for _, entry := range entries {
		if number, err := strconv.Atoi(strings.TrimSuffix(entry.Name(), ".jsonl")); err == nil {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
