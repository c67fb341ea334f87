package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// RunLine is a line of a run's transcript.
type RunLine = runLine

// runPoll is how often a transcript is checked for more.
const runPoll = 50 * time.Millisecond

// FollowAgent hands the transcript of a run to each, from its beginning, and with
// follow until the run ends or ctx does. It returns the run's state at that time.
func (e *Engine) FollowAgent(ctx context.Context, run Run, follow bool, each func(RunLine) error) (Run, error) {
	dir := e.Store.RunDir(run.SandboxID, run.Number)
	var file *os.File
	defer func() {
		if file != nil {
			file.Close()
		}
	}()
	var rest []byte
	read := func() error {
		if file == nil {
			var err error
			if file, err = os.Open(filepath.Join(dir, store.RunEvents)); err != nil {
				if errors.Is(err, os.ErrNotExist) {
					return nil
				}
				return fault.Wrap(fault.Unavailable, err, "cannot read the transcript of a run")
			}
		}
		for reader := bufio.NewReader(file); ; {
			part, err := reader.ReadBytes('\n')
			rest = append(rest, part...)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot read the transcript of a run")
			}
			var line runLine
			// A line that a crash has cut short is not shown.
			if json.Unmarshal(bytes.TrimSpace(rest), &line) == nil {
				if err := each(line); err != nil {
					return err
				}
			}
			rest = rest[:0]
		}
	}
	for {
		// The record first: whatever was written before it is in the transcript.
		now, err := e.Store.Run(run.SandboxID, run.Number)
		if err != nil {
			return run, err
		}
		deleted := run.Deleted // which no record says
		run = *e.asItStands(now)
		run.Deleted = deleted
		if err := read(); err != nil {
			return run, err
		}
		if run.State.Over() || !follow {
			return run, nil
		}
		select {
		case <-ctx.Done():
			return run, nil
		case <-time.After(runPoll):
		}
	}
}

// AwaitAgent waits until a run has ended.
func (e *Engine) AwaitAgent(ctx context.Context, run Run) (Run, error) {
	return e.FollowAgent(ctx, run, true, func(RunLine) error { return nil })
}

// RunOutput copies the output of a run's client, unchanged.
func (e *Engine) RunOutput(run Run, to io.Writer) error {
	file, err := os.Open(filepath.Join(e.Store.RunDir(run.SandboxID, run.Number), store.RunOutput))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read the output of a run")
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}
