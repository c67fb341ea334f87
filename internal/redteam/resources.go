package redteam

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

func resourceAttacks() []Attack {
	const supervise = "internal/keeper/supervise.go"
	return []Attack{
		{
			Class: Resources, Name: "fork without end", Escape: "a process table that is full, and nobody who could log in",
			Defence: supervise, limits: []string{"pids=64"}, control: wide,
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				got, err := p.probed(ctx, "fork", "200")
				if strings.Contains(got.stdout, `"fork":"ok"`) {
					got.stdout += "survived"
				}
				return stopped(ctx, w, p, got, err)
			},
		},
		{
			Class: Resources, Name: "take all memory", Escape: "a host that swaps and kills its own programs",
			Defence: supervise, limits: []string{"memory=128MiB"}, control: wide,
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				// tail keeps a line until it has ended. It takes its time, for
				// who supervises looks now and then. The program is one of the
				// machine's, so that its own pages do not count.
				got, err := p.shell(ctx, "for i in $(seq 40); do head -c 8388608 /dev/zero; sleep 0.05; done | tail | wc -c")
				if strings.TrimSpace(got.stdout) == "335544320" {
					got.stdout = "survived"
				}
				return stopped(ctx, w, p, got, err)
			},
		},
		{
			Class: Resources, Name: "fill the disk", Escape: "a disk without room for the host's own programs",
			Defence: "internal/keeper/disk.go", limits: []string{"disk=16MiB"}, control: wide,
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				// Stopped or not, it ends: it waits a while, because who
				// supervises looks now and then.
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
			Class: Resources, Name: "run on after a timeout", Escape: "processes that nobody waits for use the host's time",
			Defence: "internal/guest/end_linux.go", control: wide, fresh: true,
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

// stopped is an outcome of a bomb that says "survived"; a sandbox in which it
// was stopped has to serve on.
func stopped(ctx context.Context, w *world, p place, got result, err error) (outcome, error) {
	if strings.Contains(got.stdout, "survived") {
		return outcome{escaped: true, seen: "nothing stops it"}, nil
	}
	after := w.litterbox(ctx, "exec", p.box, "--no-commit", "--", "echo", "alive")
	if after.stdout != "alive\n" {
		return outcome{escaped: true, seen: "the sandbox does not serve any more: " + after.said()}, nil
	}
	for { // who keeps the limit says so when it looks next
		events := w.litterbox(ctx, "events", p.box, "--json")
		if strings.Contains(events.stdout, "limit.reached") || strings.Contains(got.stdout, `"EAGAIN"`) {
			return outcome{seen: "it is ended, and the sandbox serves on"}, err
		}
		select {
		case <-ctx.Done():
			return outcome{}, errors.Join(err, fmt.Errorf("it ended without having reached a limit: %s", got.said()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
