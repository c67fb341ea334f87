// Package launch starts keepers as processes: the keeper's program, in a session
// of its own, with its order on standard input and its report on standard
// output. Package keeper says what a keeper does.
package launch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Log is the keeper's standard error, in the state directory of its sandbox.
const Log = "keeper.log"

// Verb is the argument that tells a program that it is a keeper.
const Verb = "keeper"

// Processes implements keeper.Starter.
type Processes struct {
	// Program opens the program that keeps sandboxes of a driver.
	Program func(driver string) (*os.File, error)
	// Name is its argv[0], which tells it what it is.
	Name string
	// Guest opens the program that places are made of. No file means the keeper's
	// own, and so does nil.
	Guest func() (*os.File, error)
	// Env returns what else a keeper of a driver finds in its environment; nil is
	// nothing.
	Env func(driver string) ([]string, error)
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
	if s.Env != nil {
		more, err := s.Env(driver)
		if err != nil {
			return nil, err
		}
		env = append(slices.Clone(env), more...)
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
	child, err := process.Start(program, []string{s.Name, Verb}, &os.ProcAttr{
		Dir: "/", Env: append([]string{}, env...), Files: files, Sys: detached(),
	})
	if err != nil {
		return nil, errors.Join(err, order.Close(), report.Close())
	}
	return &starting{child, order, report, guest != nil}, nil
}

// open opens both programs at once, since each is read in full.
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
func (s *starting) Command(ctx context.Context, order keeper.Order, progress func(keeper.Progress)) (keeper.Report, error) {
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
	report, err := keeper.ReadReport(s.report, progress)
	if ctx.Err() != nil {
		return keeper.Report{}, ctx.Err()
	}
	return report, err
}
