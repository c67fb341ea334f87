package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const whatIgnored = whatTen + ", ignored files beside them"

// ignoredFiles commits with a hundred thousand ignored files in the sandbox's
// upper directory, as after npm ci, beside a sandbox without them and beside
// git, which looks at as many.
func (b *bench) ignoredFiles() error {
	repo := filepath.Join(b.dir, "ignored")
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(repo, ".gitignore"), []byte("/node_modules/\n"), 0o644); err != nil {
		return err
	}
	tree := filepath.Join(b.dir, "ignored-tree")
	where := fmt.Sprintf("%d of them", b.ignored)
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }
	const each = 100 // files in a directory
	script := fmt.Sprintf("mkdir node_modules && cd node_modules && for d in $(seq %d); do mkdir d$d; seq %d | split -l 1 -a 3 - d$d/f; done",
		max(1, b.ignored/each), each)
	err := errors.Join(b.fill(repo, 100),
		litterbox("create", "few"), litterbox("create", "many"),
		litterbox("exec", "many", "--", "sh", "-c", script),
		b.command(repo, "git", "worktree", "add", "-q", tree, "-b", "ignored-tree"),
		b.command(tree, "sh", "-c", script))
	if err != nil {
		return err
	}
	change := func(name string) step {
		return func(int) error { return litterbox("exec", name, "--", "sh", "-c", changeTen) }
	}
	timings, err := b.measure(change("many"), change("few"),
		func(int) error { return b.command(tree, "sh", "-c", changeTen+"; git add -A && git commit -qm change") })
	if err != nil {
		return err
	}
	b.timed(whatIgnored, where, timings[0], "the same without them", timings[1])
	b.timed(whatIgnored, where, timings[0], "git add, git commit", timings[2])
	return litterbox("delete", "--force", "few", "many")
}

// durability commits with and without a flush to disk for each commit.
func (b *bench) durability() error {
	kinds := []string{"strict", "normal"}
	steps := make([]step, 0, len(kinds))
	repos := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		repo := filepath.Join(b.dir, kind)
		if err := os.Mkdir(repo, 0o755); err != nil {
			return err
		}
		config := "durability = " + strconv.Quote(kind) + "\n"
		if err := os.WriteFile(filepath.Join(repo, ".litterbox.toml"), []byte(config), 0o644); err != nil {
			return err
		}
		if err := errors.Join(b.fill(repo, 100), b.command(repo, b.litterbox, "create", kind)); err != nil {
			return err
		}
		repos = append(repos, repo)
		steps = append(steps, func(int) error { return b.command(repo, b.litterbox, "exec", kind, "--", "sh", "-c", changeTen) })
	}
	tree := filepath.Join(b.dir, "git-strict")
	if err := b.command(repos[0], "git", "worktree", "add", "-q", tree, "-b", "git-strict"); err != nil {
		return err
	}
	steps = append(steps, func(int) error {
		return b.command(tree, "sh", "-c", changeTen+"; git -c core.fsync=all add -A && git -c core.fsync=all commit -qm change")
	})
	timings, err := b.measure(steps...)
	if err != nil {
		return err
	}
	const what = whatTen + `, durability = "strict"`
	b.timed(what, "100 files", timings[0], `durability = "normal"`, timings[1])
	b.timed(what, "100 files", timings[0], "git with core.fsync=all", timings[2])
	for n, kind := range kinds {
		if err := b.command(repos[n], b.litterbox, "delete", "--force", kind); err != nil {
			return err
		}
	}
	return nil
}
