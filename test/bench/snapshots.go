package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Names of rows with a target.
const (
	whatSnapshot   = "snapshot, idle"
	whatFork       = "fork, idle"
	whatRestore    = "restore, idle"
	whatFirstShell = "env shell, the first"
	whatNextShell  = "env shell, a further one"
	whatEnvDelete  = "env delete"
)

// keptRounds is how often the running sandbox is copied: each time all of it.
const keptRounds = 3

// snapshots measures a snapshot, a fork and a restore of a sandbox with a large
// node_modules, idle and running, beside copies of the same files.
func (b *bench) snapshots() error {
	repo := filepath.Join(b.dir, "snapshots")
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := b.fill(repo, 100); err != nil {
		return err
	}
	kept := b.kept()
	if err := b.command(repo, "sh", "-c", "echo node_modules/ >.gitignore; git add -A; git commit -qm ignore; "+kept.script()); err != nil {
		return err
	}
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }
	touch := func() error {
		return litterbox("exec", "kept", "--no-commit", "--", "sh", "-c", "date +%N >node_modules/now")
	}
	for _, args := range [][]string{{"create", "kept"}, {"exec", "kept", "--", "sh", "-c", kept.script()}} {
		if err := litterbox(args...); err != nil {
			return err
		}
	}
	where := kept.where()

	// Running: files written since the last freeze are copied, here everything.
	var running, forked, again []time.Duration
	for i := range min(b.rounds, keptRounds) {
		took, err := clocked(func() error { return litterbox("snapshot", "kept") })
		if err != nil {
			return err
		}
		running = append(running, took)
		if took, err = clocked(func() error { return litterbox("fork", "kept", fmt.Sprintf("live%d", i)) }); err != nil {
			return err
		}
		forked = append(forked, took)
	}

	// Idle: a layer is renamed, whatever its size.
	var idle, fork, restore, copied, tree []time.Duration
	stopped, trees := []time.Duration{}, filepath.Join(b.dir, "copies")
	if err := os.MkdirAll(trees, 0o755); err != nil {
		return err
	}
	for i := range min(b.rounds, wholeTrees) {
		if err := touch(); err != nil {
			return err
		}
		if err := litterbox("stop", "kept"); err != nil {
			return err
		}
		for _, one := range []struct {
			into *[]time.Duration
			do   func() error
		}{
			{&idle, func() error { return litterbox("snapshot", "kept", fmt.Sprintf("idle-%d", i)) }},
			{&fork, func() error { return litterbox("fork", "kept", fmt.Sprintf("idle%d", i)) }},
			{&restore, func() error { return litterbox("restore", "kept", fmt.Sprintf("idle-%d", i)) }},
			{&copied, func() error { return b.command(repo, "cp", "-a", "node_modules", filepath.Join(trees, fmt.Sprint(i))) }},
			{&tree, func() error {
				return b.command(repo, "git", "worktree", "add", "-q", filepath.Join(trees, fmt.Sprintf("tree%d", i)), "-b", fmt.Sprintf("kept-tree%d", i))
			}},
		} {
			took, err := clocked(one.do)
			if err != nil {
				return err
			}
			*one.into = append(*one.into, took)
		}
		// Once frozen, a running sandbox copies only what it has written since.
		if err := touch(); err != nil {
			return err
		}
		took, err := clocked(func() error { return litterbox("snapshot", "kept") })
		if err != nil {
			return err
		}
		stopped = append(stopped, took)
		if err := touch(); err != nil {
			return err
		}
		if took, err = clocked(func() error { return litterbox("fork", "kept", fmt.Sprintf("again%d", i)) }); err != nil {
			return err
		}
		again = append(again, took)
	}
	const beside = "cp -a of the ignored files"
	b.timed(whatSnapshot, where, timingOf(idle), beside, timingOf(copied))
	b.timed(whatFork, where, timingOf(fork), beside, timingOf(copied))
	b.timed(whatFork, where, timingOf(fork), "git worktree add, without them", timingOf(tree))
	b.timed(whatRestore, where, timingOf(restore), beside, timingOf(copied))
	b.timed("snapshot, running, never frozen", where, timingOf(running), beside, timingOf(copied))
	b.timed("fork, running, never frozen", where, timingOf(forked), beside, timingOf(copied))
	b.timed("snapshot, running, frozen before", where, timingOf(stopped), beside, timingOf(copied))
	b.timed("fork, running, frozen before", where, timingOf(again), beside, timingOf(copied))
	docker, err := b.dockerCopies(repo)
	if err != nil {
		return err
	}
	if len(docker) > 0 {
		b.timed(whatFork, where, timingOf(fork), "docker commit and docker run", timingOf(docker))
	}
	b.report.missing("limactl clone and virt-clone: this run sets up no virtual machine of theirs")
	if b.command(repo, "cp", "--reflink=always", filepath.Join("dir0", "file0.txt"), filepath.Join(trees, "reflink")) != nil {
		b.report.missing("cp --reflink=always of the same files: this file system shares no blocks")
		return b.deleteAll()
	}
	took, err := clocked(func() error {
		return b.command(repo, "cp", "-a", "--reflink=always", "node_modules", filepath.Join(trees, "shared"))
	})
	if err != nil {
		return err
	}
	b.timed(whatFork, where, timingOf(fork), "cp -a --reflink=always of them", once(took))
	return b.deleteAll()
}

func clocked(do func() error) (time.Duration, error) {
	start := time.Now()
	err := do()
	return time.Since(start), err
}
