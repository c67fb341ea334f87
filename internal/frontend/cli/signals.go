package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// killWindow is how soon a second Ctrl-C must follow the first to mean "now": the
// time the guest gives a process group between TERM and KILL.
const killWindow = 2 * time.Second

// interruptible gives a context that ends at an interrupt. After the first one
// signals have their default effect again, so a second one ends a program that
// does not listen.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	caught := make(chan os.Signal, 1)
	catch(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-caught:
			cancel()
		case <-ctx.Done():
		}
		signal.Stop(caught)
	}()
	return ctx, cancel
}

// interrupted makes an error of what the end of ctx has caused one that says so.
// What the error says stays: it may be a reason of its own. One that speaks of the
// end in words of its own stays as it is.
func interrupted(ctx context.Context, err error) error {
	if status := exitStatus(0); err == nil || ctx.Err() == nil || errors.As(err, &status) || errors.Is(err, syscall.EPIPE) {
		return err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, interrupted(ctx, one))
		}
		return errors.Join(all...)
	}
	text, ended := strings.CutSuffix(err.Error(), ": "+context.Canceled.Error())
	if kindOf(err) == fault.Canceled && !ended {
		return err
	}
	return fault.New(fault.Canceled, "interrupted: %s", text)
}

// catch subscribes to signals, except to those that litterbox was started
// with as ignored: nohup(1) and the background jobs of a shell script mean it.
func catch(caught chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
}

// leavingToGit gives a context for the time in which git runs on the user's
// terminal. A Ctrl-C there reaches git too, which ends in order and removes its
// locks, or shows a pager that has its own idea of Ctrl-C; so the first patience
// interrupts are git's alone. SIGTERM and SIGHUP come to litterbox only and end the
// context at once.
func leavingToGit(parent context.Context, patience int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	caught := make(chan os.Signal, 8)
	catch(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for {
			select {
			case s := <-caught:
				if !spare(s, &patience) {
					cancel()
				}
			case <-ctx.Done():
				signal.Stop(caught)
				return
			}
		}
	}()
	return ctx, cancel
}

// spare reports whether s is git's alone; negative patience never ends.
func spare(s os.Signal, patience *int) bool {
	if s != syscall.SIGINT || *patience == 0 {
		return false
	}
	if *patience > 0 {
		*patience--
	}
	return true
}

// relay hands the signals that reach litterbox to the command that it runs.
// litterbox itself goes on: it waits for the command and commits.
type relay struct {
	out     chan string        // names without SIG
	started func() bool        // the command has been sent, and gets signals
	cancel  context.CancelFunc // gives the whole request up
	now     func() time.Time

	interrupted time.Time
	killed      bool
}

// relayed lists the signals that a command gets. SIGQUIT is among them because its
// default would end litterbox with a goroutine dump and no commit.
func relayed() map[os.Signal]string {
	return map[os.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT"}
}

// run relays until ctx ends.
func (r *relay) run(ctx context.Context, caught <-chan os.Signal) {
	for {
		select {
		case s := <-caught:
			r.handle(s)
		case <-ctx.Done():
			return
		}
	}
}

func (r *relay) handle(s os.Signal) {
	if !r.started() {
		r.cancel() // the sandbox is still being made or woken: nothing to commit
		return
	}
	name := relayed()[s]
	if s == syscall.SIGINT {
		if r.killed {
			r.cancel() // even KILL did not help: the place itself hangs
			return
		}
		if now := r.now(); !r.interrupted.IsZero() && now.Sub(r.interrupted) < killWindow {
			name, r.killed = "KILL", true
		} else {
			r.interrupted = now
		}
	}
	select {
	case r.out <- name:
	default: // the listener is gone; a full queue is enough
	}
}
