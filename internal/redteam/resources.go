package redteam

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

func resourceAttacks() []Attack {
	return []Attack{
		{
			name:   "fork without end",
			limits: []string{"pids=64"}, control: wide,
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				got, err := p.probed(ctx, "fork", "200")
				if strings.Contains(got.stdout, `"fork":"ok"`) {
					got.stdout += "survived"
				}
				return stopped(ctx, w, p, got, err)
			},
		},
		{
			name:   "take all memory",
			limits: []string{"memory=128MiB"}, control: wide,
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				// tail keeps a line until it has ended. It takes its time,
				// because the supervisor looks only now and then. The program
				// is one of the machine's, so that its own pages do not count.
				got, err := p.shell(ctx, "for i in $(seq 40); do head -c 8388608 /dev/zero; sleep 0.05; done | tail | wc -c")
				if strings.TrimSpace(got.stdout) == "335544320" {
					got.stdout = "survived"
				}
				return stopped(ctx, w, p, got, err)
			},
		},
		{
			name:   "fill the disk",
			limits: []string{"disk=16MiB"}, control: wide,
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				// Stopped or not, it ends: it waits a while, because the
				// supervisor looks only now and then.
				const script = "i=0; while test $i -lt 48; do head -c 1048576 /dev/zero >> filled || exit 3; i=$((i+1)); done; "
				waiting := script + "i=0; while test $i -lt 600; do test -e go && break; sleep 0.1; i=$((i+1)); done; echo survived"
				if !p.inside() {
					waiting = "touch go; " + waiting
				}
				got, err := p.shell(ctx, waiting)
				return stopped(ctx, w, p, got, err)
			},
		},
		{
			name:    "outlive a timeout by forking",
			control: wide, fresh: true,
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				// The control has no timeout, and leaves them running.
				args, script := []string{"exec", p.box, "--no-commit"}, "sleep 4321 >/dev/null 2>&1 & sleep 4321 >/dev/null 2>&1 & "
				if p.inside() {
					args, script = append(args, "--timeout", "1s"), "trap '' TERM HUP INT; "+script+"wait"
				} else {
					script += "until grep -qx sleep /proc/$!/comm; do :; done"
				}
				w.litterbox(ctx, append(args, "--", "/bin/sh", "-c", script)...)
				got, err := p.shell(ctx, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep 432[1]'")
				return listed("running", got), err
			},
		},
	}
}

// stopped returns the outcome of a bomb that says "survived"; a sandbox in
// which it was stopped must serve on.
func stopped(ctx context.Context, w *world, p place, got result, err error) (outcome, error) {
	if strings.Contains(got.stdout, "survived") {
		return outcome{escaped: true, seen: "nothing stops it"}, nil
	}
	// A command that begins while the bomb is being ended may end with it.
	soon, cancel := context.WithTimeout(ctx, patience/4)
	defer cancel()
	reached := strings.Contains(got.stdout, `"EAGAIN"`)
	for {
		after := w.litterbox(ctx, "exec", p.box, "--no-commit", "--", "echo", "alive")
		serves := after.stdout == "alive\n"
		if !reached { // the keeper of the limit says so when it looks next
			reached = strings.Contains(w.litterbox(ctx, "events", p.box, "--json").stdout, "limit.reached")
		}
		if serves && reached {
			return outcome{seen: "it is ended, and the sandbox serves on"}, err
		}
		select {
		case <-soon.Done():
			if !serves && ctx.Err() == nil {
				return outcome{escaped: true, seen: "the sandbox no longer answers: " + after.said()}, nil
			}
			return outcome{}, errors.Join(err, fmt.Errorf("it ended without having reached a limit: %s", got.said()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
