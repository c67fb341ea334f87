package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
)

// runnerProgram is argv[0] of a litterbox that drives one run of an agent, so
// that the run goes on no matter what becomes of the terminal it was started
// in. Its order is on standard input. It is never typed.
const runnerProgram = "litterbox-agent"

func isRunner(args []string) bool { return len(args) == 1 && args[0] == runnerProgram }

func runner() int {
	// Asked to end, it makes its client end and commits the client's work.
	ctx, stop := signal.NotifyContext(caller.For(context.Background(), caller.ThisProcess()), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Ignore(syscall.SIGHUP) // its starter has hung up
	e, err := build(nil)
	if err == nil {
		err = e.DriveAgent(ctx, os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "litterbox:", err) // in the run's directory
		return 1
	}
	return 0
}

// startRunner starts this program to drive a run, in a session of its own.
func startRunner(env []string, order []byte, log string) (pid int, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	input, writer, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer input.Close()
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, errors.Join(err, writer.Close())
	}
	defer output.Close()
	child, err := os.StartProcess(program, []string{runnerProgram}, &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{input, output, output}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, errors.Join(err, writer.Close())
	}
	pid = child.Pid
	_, err = writer.Write(order)
	return pid, errors.Join(err, writer.Close(), child.Release())
}
