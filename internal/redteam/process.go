package redteam

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func processAttacks() []Attack {
	return []Attack{
		{
			name: "end PID 1 by signals",
			full: "in the degraded tier PID 1 is the machine's", try: signalPID1,
		},
		{
			name: "trace and read PID 1",
			full: "in the degraded tier PID 1 is the machine's",
			try: func(ctx context.Context, _ *world, p place) (outcome, error) {
				return onPID1(ctx, p, "process", "seize", "environ", "maps", "root", "cwd", "exe", "fd", "write mem")
			},
		},
		{
			name: "slow down PID 1, or take its limits",
			full: "in the degraded tier PID 1 is the machine's",
			try: func(ctx context.Context, _ *world, p place) (outcome, error) {
				return onPID1(ctx, p, "others", "limit", "priority", "affinity", "scheduler", "io priority")
			},
		},
	}
}

// victim returns PID 1 in the sandbox, and outside a process of our own.
func victim(p place) (pid string, end func() error, err error) {
	if p.inside() {
		return "1", func() error { return nil }, nil
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	return strconv.Itoa(cmd.Process.Pid), func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
		return err
	}, nil
}

// sharesProcesses reports whether PID 1 in the sandbox is the machine's, which
// nothing here may touch: that alone is an escape.
func sharesProcesses(ctx context.Context, p place) (outcome, error) {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return outcome{}, err
	}
	got, err := p.shell(ctx, "readlink /proc/self/ns/pid")
	if err == nil && !strings.HasPrefix(got.stdout, "pid:[") {
		err = fmt.Errorf("the sandbox does not say which processes it sees: %s", got.said())
	}
	return outcome{escaped: strings.TrimSpace(got.stdout) == own, seen: "PID 1 is the machine's"}, err
}

// onPID1 runs a verb of the probe and counts the answers that are "ok".
func onPID1(ctx context.Context, p place, verb string, looks ...string) (outcome, error) {
	if p.inside() {
		if shared, err := sharesProcesses(ctx, p); err != nil || shared.escaped {
			return shared, err
		}
	}
	pid, end, err := victim(p)
	if err != nil {
		return outcome{}, err
	}
	answers, err := p.probe(ctx, verb, pid)
	err = errors.Join(err, end())
	var done []string
	for name, answer := range answers {
		name = strings.TrimSuffix(name, " "+pid)
		if answer == "ok" && (p.inside() || slices.Contains(looks, name)) {
			done = append(done, name)
		}
	}
	slices.Sort(done)
	return outcome{escaped: len(done) > 0, seen: fmt.Sprintf("%d ways work %s", len(done), done)}, err
}

func signalPID1(ctx context.Context, w *world, p place) (outcome, error) {
	if !p.inside() {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			return outcome{}, err
		}
		_, err := p.probe(ctx, "signals", strconv.Itoa(cmd.Process.Pid))
		if err != nil {
			err = errors.Join(err, cmd.Process.Kill())
		}
		waited := cmd.Wait() // at the latest KILL, which is among the signals, ends it
		return outcome{escaped: waited != nil, seen: "another process ends: " + fmt.Sprint(waited)}, err
	}
	if shared, err := sharesProcesses(ctx, p); err != nil || shared.escaped {
		return shared, err
	}
	before, err := w.status(ctx, p.box)
	if err != nil {
		return outcome{}, err
	}
	if _, err := p.probe(ctx, "signals", "1"); err != nil {
		return outcome{}, err
	}
	w.litterbox(ctx, "exec", p.box, "--no-commit", "--", "/bin/sh", "-c", "kill -9 1; kill -19 1")
	got := w.litterbox(ctx, "exec", p.box, "--no-commit", "--", "echo", "alive")
	after, err := w.status(ctx, p.box)
	ended := got.stdout != "alive\n" || after.Lease.Handle != before.Lease.Handle
	seen := "after every signal it serves on"
	if ended {
		seen = "the sandbox had to restart: " + got.said()
	}
	return outcome{escaped: ended, seen: seen}, err
}
