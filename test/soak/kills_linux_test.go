package soak_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// killClient ends a command at a random moment. Its commit may be there or
// not; the next one finds out.
func (b *box) killClient(random *rand.Rand) {
	content := b.next()
	switch state := b.killed(random, 60, b.Repo, "exec", b.name, "--", "/bin/sh", "-c", b.script(content)); {
	case state == nil || state.ExitCode() > 0: // it is an error already
	case state.Success():
		b.holds = []string{content}
	case b.holds == nil: // what the first command writes may be missing, too
		b.exec(random)
		return
	default:
		b.holds = append(slices.Clone(b.holds), content)
	}
	b.verify()
	b.exec(random) // the next command makes it certain
}

// killed runs litterbox and ends it within that many milliseconds. Its work is
// done or not. A failure of its own is an error.
func (b *box) killed(random *rand.Rand, within int, dir string, args ...string) *os.ProcessState {
	cmd := exec.Command(b.Program("litterbox"), args...)
	var output bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, b.Env, &output, &output, 5*time.Second
	if err := cmd.Start(); err != nil {
		b.Errorf("%v", err)
		return nil
	}
	time.Sleep(time.Duration(random.IntN(within)) * time.Millisecond)
	_ = cmd.Process.Kill() // unless it has ended
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() > 0 {
		b.Errorf("litterbox %q: %v\n%s", args, err, &output)
	}
	return cmd.ProcessState
}

func (b *box) killKeeper(random *rand.Rand) {
	keeper, _, err := b.Processes(b.name)
	b.kill(keeper, err)
	b.exec(random)
}

func (b *box) killGuest(random *rand.Rand) {
	_, guest, err := b.Processes(b.name)
	switch {
	case b.far == nil:
		b.kill(guest, err)
	case err == nil:
		_, _ = b.In(*b.far, "kill -9 "+strconv.Itoa(guest.PID)) // it may have ended
	case !errors.Is(err, fs.ErrNotExist):
		b.Error(err)
	}
	b.exec(random)
}

// kill ends that very process, if there is one by its lease: its number may
// belong to another one by now.
func (b *box) kill(p sandbox.Process, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		b.Error(err)
		return
	}
	pidfd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(pidfd)
	if process.Alive(p) {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) // it may end meanwhile
	}
}
