// Package launch starts keepers as processes: the keeper's program, in a session
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

// Verb is the argument by which a program knows that it is a keeper.
const Verb = "keeper"

// Processes implements keeper.Starter.
type Processes struct {
	// Program opens the program that keeps sandboxes of a driver.
	Program func(driver string) (*os.File, error)
	// Name is its argv[0], by which it knows what it is.
	Name string
	// Guest opens the program that places are made of; no file is the keeper's
	// own. nil is that too.
	Guest func() (*os.File, error)
}

// GuestDescriptor is the keeper's descriptor of the guest's program, where its
// order says that it has one.
const GuestDescriptor = 3

// Start implements keeper.Starter.
func (s Processes) Start(driver, dir string, env []string) (keeper.Starting, error) {
	if err := process.CloseOnExec(3); err != nil {
		return nil, err
	}
	program, guest, err := s.open(driver)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	if guest != nil {
		defer guest.Close()
	}
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
	files := []*os.File{input, output, log}
	if guest != nil {
		files = append(files, guest)
	}
	// An empty list, unlike nil, is no environment at all.
	child, err := os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), []string{s.Name, Verb}, &os.ProcAttr{
		Dir: "/", Env: append([]string{}, env...), Files: files, Sys: detached(),
	})
	if err != nil {
		return nil, errors.Join(err, order.Close(), report.Close())
	}
	return &starting{child, order, report, guest != nil}, nil
}

// open opens both programs, which takes a look at all that is in them, at once.
func (s Processes) open(driver string) (program, guest *os.File, err error) {
	if s.Guest == nil {
		program, err = s.Program(driver)
		return program, nil, err
	}
	opened := make(chan error, 1)
	go func() {
		var err error
		guest, err = s.Guest()
		opened <- err
	}()
	program, err = s.Program(driver)
	if err = errors.Join(err, <-opened); err == nil {
		return program, guest, nil
	}
	for _, file := range []*os.File{program, guest} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return nil, nil, err
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
	guest  bool     // it has the guest's program
}

// Abandon implements keeper.Starting.
func (s *starting) Abandon() {
	_ = errors.Join(s.order.Close(), s.report.Close()) // only pipes
	_, _ = s.child.Wait()                              // it ends at the end of its input
}

// Command implements keeper.Starting.
func (s *starting) Command(ctx context.Context, order keeper.Order) (keeper.Report, error) {
	order.Guest = s.guest
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
