// Package launch starts keepers as processes: the small program, in a session
// of its own, with its order on standard input and its report on standard
// output. What a keeper does is package keeper's.
package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Log is the keeper's standard error, in the state directory of its sandbox.
const Log = "keeper.log"

// Verb is the argument by which the small program knows that it is a keeper.
const Verb = "keeper"

// Processes implements keeper.Starter.
type Processes struct {
	// Program opens the program that keeps sandboxes of a driver.
	Program func(driver string) (*os.File, error)
	// Name is its argv[0], by which it knows what it is.
	Name string
}

// Start implements keeper.Starter.
func (s Processes) Start(driver, dir string, env []string) (keeper.Starting, error) {
	if err := process.CloseOnExec(3); err != nil {
		return nil, err
	}
	program, err := s.Program(driver)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	log, err := os.OpenFile(filepath.Join(dir, Log), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	input, order, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	report, output, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, order.Close())
	}
	defer output.Close()
	// An empty list, unlike nil, is no environment at all.
	child, err := os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), []string{s.Name, Verb}, &os.ProcAttr{
		Dir: "/", Env: append([]string{}, env...), Files: []*os.File{input, output, log}, Sys: detached(),
	})
	if err != nil {
		return nil, errors.Join(err, order.Close(), report.Close())
	}
	return &starting{child, order, report}, nil
}

// End implements keeper.Starter.
func (Processes) End(_ string, holder sandbox.Process) (bool, error) {
	if !process.Alive(holder) {
		return false, nil
	}
	err := process.End(holder)
	return err == nil, err
}

// starting is a child that reads its order.
type starting struct {
	child  *os.Process
	order  *os.File // its standard input
	report *os.File // its standard output
}

// Abandon implements keeper.Starting.
func (s *starting) Abandon() {
	_ = errors.Join(s.order.Close(), s.report.Close()) // only pipes
	_, _ = s.child.Wait()                              // it ends at the end of its input
}

// Command implements keeper.Starting.
func (s *starting) Command(ctx context.Context, order keeper.Order) (keeper.Report, error) {
	data, err := json.Marshal(order)
	if err != nil {
		s.Abandon()
		return keeper.Report{}, err
	}
	defer s.report.Close()
	go func() {
		_, _ = s.order.Write(data) // a keeper that died early shows in its report
		s.order.Close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = s.child.Kill(); s.report.Close() })
	defer stop()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(s.report)
	if ctx.Err() != nil {
		return keeper.Report{}, ctx.Err()
	}
	if err != nil {
		return keeper.Report{}, err
	}
	var report keeper.Report
	if err := json.Unmarshal(answer.Bytes(), &report); err != nil {
		return keeper.Report{}, keeper.ErrSilent
	}
	return report, nil
}
