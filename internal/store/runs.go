package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Files of an agent's run, in its directory.
const (
	RunFile    = "run.json"
	RunEvents  = "transcript.jsonl" // its client's stream, as events
	RunOutput  = "output.log"       // the client's output, as printed
	RunSocket  = "terminal.sock"    // of a run with a terminal, while it lasts
	RunProblem = "runner.log"       // messages of the process that drives it
)

// runsDir holds the runs of one sandbox. It is beside the sandboxes: runs can be
// read after their sandboxes are deleted, too.
func (s *Store) runsDir(id string) string { return filepath.Join(s.Root, "runs", id) }

// RunDir is the directory of one run.
func (s *Store) RunDir(id string, number int) string {
	return filepath.Join(s.runsDir(id), strconv.Itoa(number))
}

// NewRun makes a directory for a run of the sandbox and completes its number.
func (s *Store) NewRun(run *sandbox.Run) error {
	dir := s.runsDir(run.SandboxID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unavailable(err, "make the directory %q", dir)
	}
	numbers, err := runNumbers(dir)
	if err != nil {
		return err
	}
	run.Number = 1
	if len(numbers) > 0 {
		run.Number = numbers[len(numbers)-1] + 1
	}
	for {
		err := os.Mkdir(s.RunDir(run.SandboxID, run.Number), 0o700)
		if err == nil {
			return s.SaveRun(run)
		}
		if !errors.Is(err, fs.ErrExist) {
			return unavailable(err, "make the directory of a run")
		}
		run.Number++ // another run was faster
	}
}

// SaveRun replaces the record of a run.
func (s *Store) SaveRun(run *sandbox.Run) error {
	run.Version = sandbox.RecordVersion
	return s.write(filepath.Join(s.RunDir(run.SandboxID, run.Number), RunFile), run)
}

// Run reads the record of one run.
func (s *Store) Run(id string, number int) (*sandbox.Run, error) {
	var run sandbox.Run
	if err := s.read(filepath.Join(s.RunDir(id, number), RunFile), &run); err != nil {
		return nil, err
	}
	return &run, nil
}

// Runs lists the runs of a sandbox, oldest first. One that cannot be read is
// left out.
func (s *Store) Runs(id string) ([]*sandbox.Run, error) {
	numbers, err := runNumbers(s.runsDir(id))
	if err != nil {
		return nil, err
	}
	var runs []*sandbox.Run
	for _, number := range numbers {
		if run, err := s.Run(id, number); err == nil {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// AllRuns lists the runs of all sandboxes, also of those that are deleted, by
// when they began.
func (s *Store) AllRuns() ([]*sandbox.Run, error) {
	entries, err := os.ReadDir(filepath.Join(s.Root, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unavailable(err, "list the runs of agents")
	}
	var all []*sandbox.Run
	for _, entry := range entries {
		runs, err := s.Runs(entry.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
	}
	slices.SortStableFunc(all, func(a, b *sandbox.Run) int { return a.StartedAt.Compare(b.StartedAt) })
	return all, nil
}

// ForgetRuns removes the runs of sandboxes that are gone, of which the last
// ended before a moment.
func (s *Store) ForgetRuns(before time.Time) error {
	entries, err := os.ReadDir(filepath.Join(s.Root, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unavailable(err, "list the runs of agents")
	}
	var problems []error
	for _, entry := range entries {
		id := entry.Name()
		if _, err := os.Lstat(s.SandboxDir(id)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := os.Lstat(s.Trash().SandboxDir(id)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		runs, err := s.Runs(id)
		if err != nil || len(runs) > 0 && runs[len(runs)-1].EndedAt.After(before) {
			continue
		}
		problems = append(problems, os.RemoveAll(s.runsDir(id)))
	}
	return errors.Join(problems...)
}

func runNumbers(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unavailable(err, "list the runs of a sandbox")
	}
	var numbers []int
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
