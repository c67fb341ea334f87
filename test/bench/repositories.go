package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// The subjects of targets.
const (
	whatCreate = "create, first command and its commit"
	whatExec   = "exec without commit"
	whatCommit = "exec with commit"
	whatTen    = "change ten files and commit"
)

// changeTen changes ten files of a filled repository.
const changeTen = "for i in 0 1 2 3 4 5 6 7 8 9; do echo change >> dir0/file$i.txt; done"

func (b *bench) repositories() error {
	for _, count := range b.sizes {
		if err := b.repository(count); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) repository(count int) error {
	repo := filepath.Join(b.dir, fmt.Sprintf("repo%d", count))
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := b.fill(repo, count); err != nil {
		return err
	}
	size := fmt.Sprintf("%d files", count)
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }

	if err := b.checkouts(repo, size, litterbox); err != nil {
		return err
	}
	if err := b.commands(repo, size, litterbox); err != nil {
		return err
	}
	if err := b.tenFiles(repo, size, litterbox); err != nil {
		return err
	}
	if err := b.memory(size); err != nil {
		return err
	}
	if err := b.status(repo, size, litterbox); err != nil {
		return err
	}
	if err := b.afterCommits(repo, size, litterbox); err != nil {
		return err
	}
	names := []string{"delete", "--force", "first"}
	for i := range b.rounds {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	return litterbox(names...)
}

func (b *bench) tree(size string) string { return filepath.Join(b.dir, "tree"+size) }

// commands measures a sandbox from nothing to its first commit, and commands
// in one that runs.
func (b *bench) commands(repo, size string, litterbox func(...string) error) error {
	steps := []step{
		func(i int) error { return litterbox("run", fmt.Sprintf("s%d", i), "--", "true") },
		func(int) error { return litterbox("exec", "first", "--no-commit", "--", "true") },
		func(int) error { return litterbox("exec", "first", "--", "true") },
	}
	for _, other := range b.others {
		steps = append(steps, func(int) error { return b.command(repo, other.argv()...) })
	}
	timings, err := b.measure(steps...)
	if err != nil {
		return err
	}
	for n, what := range []string{whatCreate, whatExec, whatCommit} {
		for i, other := range b.others {
			b.timed(what, size, timings[n], other.name, timings[3+i])
		}
		if len(b.others) == 0 {
			b.timed(what, size, timings[n], "", timing{})
		}
		b.compare(what, size, timings[n])
	}
	return b.mcp(repo, size)
}

// tenFiles changes ten files and commits: inside with exec, and beside it in
// a worktree with git add and git commit.
func (b *bench) tenFiles(repo, size string, litterbox func(...string) error) error {
	const what = whatTen
	// One after the other: in a large repository git's own work would leave the
	// disk and the caches busy for the next one.
	here, err := b.measure(func(int) error { return litterbox("exec", "first", "--", "sh", "-c", changeTen) })
	if err != nil {
		return err
	}
	beside, err := b.measure(func(int) error {
		return b.command(b.tree(size), "sh", "-c", changeTen+"; git add -A && git commit -qm change")
	})
	if err != nil {
		return err
	}
	b.timed(what, size, here[0], "git add, git commit", beside[0])
	b.compare(what, size, here[0])
	return nil
}
