package app

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// backgroundProgram is argv[0] of a litterbox that does deferred work: its
// arguments are a task and a sandbox. It is never typed.
const backgroundProgram = "litterbox-background"

func isBackground(args []string) bool {
	return len(args) == 3 && args[0] == backgroundProgram
}

func background(args []string) int {
	process.MakeIdle(os.Getpid())
	e, err := build(nil)
	if err == nil {
		err = e.Background(caller.For(context.Background(), caller.ThisProcess()), args[1], args[2])
	}
	if err != nil {
		return 1 // no one would read a reason; the deferred work stays undone
	}
	return 0
}

// later starts this program for a task, in a session of its own and without
// anything of ours open; env is all its environment.
func later(env []string, task, sandboxID string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	child, err := os.StartProcess(program, []string{backgroundProgram, task, sandboxID}, &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{null, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return errors.Join(err, null.Close())
	}
	return errors.Join(child.Release(), null.Close())
}
