package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// sleepers is the number of processes stopped in a pause.
const sleepers = 50

// lifecycle measures a pause beside the signals that a user would send.
func (b *bench) lifecycle() error {
	repo := filepath.Join(b.dir, "lifecycle")
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := b.fill(repo, 100); err != nil {
		return err
	}
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }
	sleep := fmt.Sprintf("for i in $(seq %d); do sleep 100000 >/dev/null 2>&1 & done", sleepers)
	if err := litterbox("create", "box0"); err != nil {
		return err
	}
	if err := litterbox("exec", "box0", "--no-commit", "--", "sh", "-c", sleep); err != nil {
		return err
	}
	// Beside it, as many processes in a process group of their own.
	group := exec.Command("setsid", "sh", "-c", sleep+"; wait")
	if err := group.Start(); err != nil {
		return err
	}
	signal := func(name string) error {
		return b.command(repo, "kill", "-"+name, "--", fmt.Sprintf("-%d", group.Process.Pid))
	}
	defer func() {
		_ = signal("KILL")
		_ = group.Wait()
	}()
	var steps []step
	for _, do := range []func() error{
		func() error { return litterbox("pause", "box0") },
		func() error { return litterbox("resume", "box0") },
		func() error { return signal("STOP") },
		func() error { return signal("CONT") },
	} {
		steps = append(steps, func(int) error { return do() })
	}
	timings, err := b.measure(steps...)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("%d processes", sleepers)
	b.timed("pause", where, timings[0], "kill -STOP", timings[2])
	b.timed("resume", where, timings[1], "kill -CONT", timings[3])
	return litterbox("delete", "--force", "box0")
}
