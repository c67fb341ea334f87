package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const whatFirst = "create with the first checkout"

// wholeTrees is how often a whole tree is checked out: that takes long, and
// ext4 gets slower with every large tree made and deleted.
const wholeTrees = 5

// checkouts creates sandboxes where the tree is not cached, in turns with git's
// own checkout. It leaves one of git's work trees, and the sandbox "first".
func (b *bench) checkouts(repo, size string, litterbox func(...string) error) error {
	var here, beside []time.Duration
	for i := range min(b.rounds, wholeTrees) {
		fresh := *b
		fresh.env = append(slices.Clone(b.env), "XDG_STATE_HOME="+filepath.Join(b.dir, "fresh"+size, strconv.Itoa(i)))
		if err := fresh.prime(); err != nil {
			return err
		}
		name := fmt.Sprintf("fresh%d", i)
		start := time.Now()
		if err := fresh.command(repo, b.litterbox, "create", name); err != nil {
			return err
		}
		here = append(here, time.Since(start))
		if err := fresh.command(repo, b.litterbox, "delete", "--force", name); err != nil {
			return err
		}
		tree := b.tree(size)
		if i > 0 {
			tree += "-" + strconv.Itoa(i)
		}
		start = time.Now()
		if err := b.command(repo, "git", "worktree", "add", "-q", tree, "-b", fmt.Sprintf("beside%d", i)); err != nil {
			return err
		}
		beside = append(beside, time.Since(start))
	}
	b.checkout = timingOf(beside)
	b.timed(whatFirst, size, timingOf(here), "git worktree add", b.checkout)
	return litterbox("create", "first")
}

// prime does in a new state directory the work done once for all repositories:
// the guest program is unpacked, and an overlay tried.
func (b *bench) prime() error {
	repo := filepath.Join(b.dir, "prime")
	if _, err := os.Stat(repo); err != nil {
		if err := os.Mkdir(repo, 0o755); err != nil {
			return err
		}
		if err := b.fill(repo, 1); err != nil {
			return err
		}
	}
	if err := b.command(repo, b.litterbox, "create", "prime"); err != nil {
		return err
	}
	return b.command(repo, b.litterbox, "delete", "--force", "prime")
}

// afterCommits creates a sandbox after each commit of one file on the host, in
// turns with one whose tree is cached.
func (b *bench) afterCommits(repo, size string, litterbox func(...string) error) error {
	var after, cached []time.Duration
	names := []string{"delete", "--force"}
	create := func(name string) (time.Duration, error) {
		names = append(names, name)
		start := time.Now()
		err := litterbox("create", name)
		return time.Since(start), err
	}
	for i := range b.rounds {
		content := fmt.Appendf(nil, "commit %d\n", i)
		if err := os.WriteFile(filepath.Join(repo, "dir0", "file1.txt"), content, 0o644); err != nil {
			return err
		}
		if err := b.command(repo, "git", "commit", "-qam", "next"); err != nil {
			return err
		}
		took, err := create(fmt.Sprintf("after%d", i))
		if err != nil {
			return err
		}
		after = append(after, took)
		if took, err = create(fmt.Sprintf("cached%d", i)); err != nil {
			return err
		}
		cached = append(cached, took)
	}
	b.timed("create after the host committed one file", size, timingOf(after), "the same without a commit", timingOf(cached))
	b.timed("create, tree cached", size, timingOf(cached), "git worktree add", b.checkout)
	return litterbox(names...)
}

// status compares git status inside, the first and later ones, with the same
// outside. The time is git's own, as a shell measures it.
func (b *bench) status(repo, size string, litterbox func(...string) error) error {
	var first, steady, beyond []time.Duration
	names := []string{"delete", "--force"}
	for i := range b.rounds {
		name := fmt.Sprintf("status%d", i)
		names = append(names, name)
		if err := litterbox("create", name); err != nil {
			return err
		}
		took, err := b.durations(repo, b.litterbox, "exec", "--no-commit", name, "--", "bash", "-c", timed+timed)
		if err != nil || len(took) != 2 {
			return fmt.Errorf("cannot time git status inside (bash 5 is needed): %w", err)
		}
		first, steady = append(first, took[0]), append(steady, took[1])
		// Once before: the file system's first reads are not what we measure.
		if took, err = b.durations(repo, "bash", "-c", "git status >/dev/null; "+timed); err != nil || len(took) != 1 {
			return fmt.Errorf("cannot time git status (bash 5 is needed): %w", err)
		}
		beyond = append(beyond, took[0])
	}
	beside := timingOf(beyond)
	b.timed("first git status inside", size, timingOf(first), outside, beside)
	b.timed("git status inside", size, timingOf(steady), outside, beside)
	return litterbox(names...)
}

// timed runs git status in bash 5 and prints the microseconds that it took.
const timed = "s=$EPOCHREALTIME; git status >/dev/null; e=$EPOCHREALTIME; echo $((${e/[.,]/} - ${s/[.,]/})); "

// durations runs a command that prints microseconds, each on a line of its own.
func (b *bench) durations(dir string, argv ...string) ([]time.Duration, error) {
	output, err := b.output(dir, argv...)
	if err != nil {
		return nil, err
	}
	var all []time.Duration
	for line := range strings.Lines(output) {
		if took, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			all = append(all, time.Duration(took)*time.Microsecond)
		}
	}
	return all, nil
}
