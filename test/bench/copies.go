package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The number of sandboxes on one golden, and of those made at once.
const (
	goldenBoxes   = 20
	workersAtOnce = 20
)

// goldens measures sandboxes that begin with a golden that holds a large
// node_modules: one, several at once, and the disk space they take.
func (b *bench) goldens() error {
	repo := filepath.Join(b.dir, "goldens")
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := b.fill(repo, 100); err != nil {
		return err
	}
	kept := b.kept()
	npm := b.hasNpm("git worktree add and npm ci")
	if npm {
		if err := npmProject(repo, kept); err != nil {
			return err
		}
	}
	configuration := fmt.Sprintf("[hooks]\npost_sync = [\"sh\", \"-c\", %q]\n", kept.script())
	if err := os.WriteFile(filepath.Join(repo, ".litterbox.toml"), []byte(configuration), 0o644); err != nil {
		return err
	}
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }
	for _, argv := range [][]string{
		{"sh", "-c", "echo node_modules/ >.gitignore; git add -A; git commit -qm golden"},
		{b.litterbox, "trust"}, {"sh", "-c", kept.script()},
	} {
		if err := b.command(repo, argv...); err != nil {
			return err
		}
	}
	built, err := clocked(func() error { return litterbox("build") })
	if err != nil {
		return err
	}
	where := kept.where()
	b.timed("build of a golden", where, once(built), "lima-sandbox, as its document says", once(750*time.Second))
	var with, without, copied, installed []time.Duration
	for i := range min(b.rounds, wholeTrees) {
		tree := filepath.Join(b.dir, "copies", fmt.Sprintf("golden%d", i))
		for _, one := range []struct {
			into *[]time.Duration
			argv []string
		}{
			{&with, []string{"sh", "-c", "\"$1\" create \"$2\" && \"$1\" exec \"$2\" -- test -d node_modules/p1", "sh", b.litterbox, fmt.Sprintf("with%d", i)}},
			{&without, []string{"sh", "-c", "\"$1\" create \"$2\" --no-golden && \"$1\" exec \"$2\" -- true", "sh", b.litterbox, fmt.Sprintf("without%d", i)}},
			{&copied, []string{"sh", "-c", "git worktree add -q \"$1\" -b \"$2\" && cp -a node_modules \"$1\"", "sh", tree, fmt.Sprintf("golden-tree%d", i)}},
		} {
			took, err := clocked(func() error { return b.command(repo, one.argv...) })
			if err != nil {
				return err
			}
			*one.into = append(*one.into, took)
		}
		if npm && i < keptRounds {
			took, err := clocked(func() error {
				return b.command(repo, "sh", "-ec", `git worktree add -q "$1" -b "$2" && cd "$1" && `+npmCI, "sh", tree+"-npm", fmt.Sprintf("golden-npm%d", i))
			})
			if err != nil {
				return err
			}
			installed = append(installed, took)
		}
	}
	const what = "create with a golden, to the first command"
	b.timed(what, where, timingOf(with), "create without one", timingOf(without))
	b.timed(what, where, timingOf(with), "git worktree add and cp -a of them", timingOf(copied))
	if npm {
		b.timed(what, where, timingOf(with), "git worktree add and npm ci", timingOf(installed))
	}
	b.timed(what, where, timingOf(with), "a worker of lima-sandbox, as its document says", once(time.Minute))
	if err := b.deleteAll(); err != nil {
		return err
	}
	took, err := clocked(func() error {
		return litterbox("spawn", fmt.Sprint(goldenBoxes), "--parallel", fmt.Sprint(workersAtOnce))
	})
	if err != nil {
		return err
	}
	b.timed(fmt.Sprintf("spawn %d workers with a golden, %d at once", goldenBoxes, workersAtOnce), where, once(took), "one git worktree with a copy of them", timingOf(copied))
	if err := litterbox("stop", "goldens-worker-1"); err != nil {
		return err
	}
	if took, err = clocked(func() error { return litterbox("start", "goldens-worker-1") }); err != nil {
		return err
	}
	b.timed("start of a stopped worker", where, once(took), "lima-sandbox, as its document says", once(10*time.Second))
	if err := b.deleteAll(); err != nil {
		return err
	}
	return b.forksOnDisk(repo, where)
}

// forksOnDisk measures the disk space of many forks of one sandbox.
func (b *bench) forksOnDisk(repo, where string) error {
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }
	for _, args := range [][]string{{"create", "kept"}, {"stop", "kept"}} {
		if err := litterbox(args...); err != nil {
			return err
		}
	}
	before, err := b.onDisk(repo)
	if err != nil {
		return err
	}
	if err := litterbox("fork", "kept", "again", "--count", fmt.Sprint(goldenBoxes)); err != nil {
		return err
	}
	after, err := b.onDisk(repo)
	if err != nil {
		return err
	}
	b.alone(fmt.Sprintf("disk of %d forks", goldenBoxes), where, float64(after-before)/(1<<20), "MiB")
	return b.deleteAll()
}

// onDisk returns the disk space of all sandboxes, in bytes.
func (b *bench) onDisk(repo string) (int64, error) {
	printed, err := b.output(repo, b.litterbox, "df", "--json")
	if err != nil {
		return 0, err
	}
	var usage struct {
		Total int64 `json:"total_bytes"`
	}
	return usage.Total, json.Unmarshal([]byte(printed), &usage)
}

// environments measures shells in a live environment: the first, which makes it,
// further ones, and its deletion.
func (b *bench) environments() error {
	repo := filepath.Join(b.dir, "environments")
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := b.fill(repo, 100); err != nil {
		return err
	}
	shell := func() error { return b.command(repo, b.litterbox, "env", "shell", "--", "true") }
	times := map[string][]time.Duration{}
	for range min(b.rounds, 10) {
		for _, one := range []struct {
			name string
			do   func() error
		}{{"first", shell}, {"further", shell}, {"delete", func() error { return b.command(repo, b.litterbox, "env", "delete") }}} {
			took, err := clocked(one.do)
			if err != nil {
				return err
			}
			times[one.name] = append(times[one.name], took)
		}
	}
	for _, one := range []struct {
		name, what string
		said       time.Duration // of llima-box's own document, in a Lima VM: not measured here
	}{
		{"first", whatFirstShell, 2500 * time.Millisecond},
		{"further", whatNextShell, 100 * time.Millisecond},
		{"delete", whatEnvDelete, time.Second},
	} {
		b.timed(one.what, "100 files", timingOf(times[one.name]), "llima-box, as its document says", once(one.said))
	}
	return nil
}
