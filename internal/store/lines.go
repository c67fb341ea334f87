package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// AppendIteration adds one line to the sandbox's log.
func (s *Store) AppendIteration(id string, iteration *sandbox.Iteration) error {
	iteration.Version = sandbox.RecordVersion
	return s.appendLine(filepath.Join(s.SandboxDir(id), "iterations.jsonl"), iteration)
}

// Iterations reads the log, oldest first. A last line that a crash tore is
// left out; the commit it spoke of is on the branch all the same.
func (s *Store) Iterations(id string) ([]sandbox.Iteration, error) {
	path := filepath.Join(s.SandboxDir(id), "iterations.jsonl")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err, "read the log %q", path)
	}
	var all []sandbox.Iteration
	for line := range bytes.Lines(data) {
		var one sandbox.Iteration
		if json.Unmarshal(line, &one) != nil {
			continue // torn by a crash
		}
		all = append(all, one)
	}
	return all, nil
}

// appendLine writes one JSON line with a single write(2) on an O_APPEND
// descriptor. When a crash has torn the line before, it starts a fresh one.
func (s *Store) appendLine(path string, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return unavailable(err, "encode a line of %q", path)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return unavailable(err, "open the log %q", path)
	}
	if info, statErr := file.Stat(); statErr == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			data = append([]byte{'\n'}, data...)
		}
	}
	_, err = file.Write(append(data, '\n'))
	if err == nil && s.Strict {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return unavailable(err, "append to the log %q", path)
	}
	return nil
}

func (s *Store) cyclesDir(id string) string { return filepath.Join(s.SandboxDir(id), "cycles") }

// BeginCycle gives cycle the next free number and records it; of many racing
// callers each gets its own.
func (s *Store) BeginCycle(id string, cycle *sandbox.Cycle) error {
	dir := s.cyclesDir(id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unavailable(err, "record a cycle")
	}
	numbers, err := cycleNumbers(dir)
	if err != nil {
		return err
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	for ; ; next++ {
		file, err := os.OpenFile(cyclePath(dir, next), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return unavailable(err, "record a cycle")
		}
		cycle.ID = next
		return errors.Join(file.Close(), s.SaveCycle(id, cycle))
	}
}

// SaveCycle writes the record of a cycle.
func (s *Store) SaveCycle(id string, cycle *sandbox.Cycle) error {
	cycle.Version = sandbox.RecordVersion
	return s.write(cyclePath(s.cyclesDir(id), cycle.ID), cycle)
}

// Cycles reads the records of the newest most cycles, oldest first; 0 means all.
func (s *Store) Cycles(id string, most int) ([]sandbox.Cycle, error) {
	dir := s.cyclesDir(id)
	numbers, err := cycleNumbers(dir)
	if err != nil {
		return nil, err
	}
	if most > 0 && len(numbers) > most {
		numbers = numbers[len(numbers)-most:]
	}
	var cycles []sandbox.Cycle
	for _, number := range numbers {
		data, err := os.ReadFile(cyclePath(dir, number))
		if err != nil {
			return nil, unavailable(err, "read cycle %d", number)
		}
		var cycle sandbox.Cycle
		if len(data) == 0 || json.Unmarshal(data, &cycle) != nil {
			continue // its client died between claiming the number and writing
		}
		cycles = append(cycles, cycle)
	}
	return cycles, nil
}

func cyclePath(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("%08d.json", number))
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
		if number, err := strconv.Atoi(strings.TrimSuffix(entry.Name(), ".json")); err == nil {
			numbers = append(numbers, number)
		}
	}
	sort.Ints(numbers)
	return numbers, nil
}
