// Command bench measures litterbox beside what users would pick instead, on
// the same machine in the same run, and prints ratios. It is no test: nothing
// fails for being slow.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	program := flag.String("litterbox", "bin/litterbox", "the program to measure")
	rounds := flag.Int("rounds", 20, "repetitions of each measurement; the median counts")
	sizes := flag.String("files", "100,15000", "sizes of the repositories, in files")
	flag.Parse()
	if err := run(*program, *rounds, strings.Split(*sizes, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	litterbox string
	dir       string
	rounds    int
	env       []string
}

func run(program string, rounds int, sizes []string) error {
	dir, err := os.MkdirTemp("", "litterbox-bench-")
	if err != nil {
		return err
	}
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	b := &bench{litterbox: program, dir: dir, rounds: rounds, env: append(os.Environ(),
		"HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"GIT_CONFIG_GLOBAL="+filepath.Join(dir, "gitconfig"))}
	config := "[user]\n\tname = Bench\n\temail = bench@example.com\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(dir, "gitconfig"), []byte(config), 0o600); err != nil {
		return err
	}
	fmt.Printf("| what | here | beside | ratio |\n|---|---|---|---|\n")
	if err := b.version(); err != nil {
		return err
	}
	for _, size := range sizes {
		count, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		if err := b.repository(count); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// row prints one line of the table.
func row(what string, here time.Duration, beside string, other time.Duration) {
	ratio, name := "", "–"
	if other > 0 {
		ratio = fmt.Sprintf("%.2f ×", float64(here)/float64(other))
		name = fmt.Sprintf("%s %s", beside, round(other))
	}
	fmt.Printf("| %s | %s | %s | %s |\n", what, round(here), name, ratio)
}

func round(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// median runs step rounds times and returns the median of its durations.
func (b *bench) median(step func(i int) error) (time.Duration, error) {
	var all []time.Duration
	for i := range b.rounds {
		start := time.Now()
		if err := step(i); err != nil {
			return 0, err
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

func (b *bench) command(dir string, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, b.env
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, output.String())
	}
	return nil
}

func (b *bench) version() error {
	hello := filepath.Join(b.dir, "hello")
	source := filepath.Join(b.dir, "hello.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o600); err != nil {
		return err
	}
	if err := b.command(b.dir, "go", "build", "-o", hello, source); err != nil {
		return err
	}
	other, err := b.median(func(int) error { return b.command(b.dir, hello) })
	if err != nil {
		return err
	}
	here, err := b.median(func(int) error { return b.command(b.dir, b.litterbox, "version") })
	row("`litterbox version`", here, "hello world in Go", other)
	return err
}

// fill makes a repository of count small files in directories of 100.
func (b *bench) fill(repo string, count int) error {
	for i := range count {
		name := filepath.Join(repo, fmt.Sprintf("dir%d", i/100), fmt.Sprintf("file%d.txt", i))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(name, fmt.Appendf(nil, "file %d\nof a repository\n", i), 0o644); err != nil {
			return err
		}
	}
	for _, argv := range [][]string{{"git", "init", "-q"}, {"git", "add", "-A"}, {"git", "commit", "-qm", "first"}} {
		if err := b.command(repo, argv...); err != nil {
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

	// First checkout of the tree, once: afterwards it is cached.
	start := time.Now()
	if err := litterbox("create", "first"); err != nil {
		return err
	}
	checkout := time.Since(start)
	start = time.Now()
	if err := b.command(repo, "git", "worktree", "add", "-q", filepath.Join(b.dir, "tree"+size), "-b", "beside"); err != nil {
		return err
	}
	row("create with the first checkout, "+size, checkout, "git worktree add", time.Since(start))

	var bwrap time.Duration
	if _, err := exec.LookPath("bwrap"); err == nil {
		if bwrap, err = b.median(func(int) error {
			return b.command(repo, "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")
		}); err != nil {
			return err
		}
	}
	here, err := b.median(func(i int) error { return litterbox("run", fmt.Sprintf("s%d", i), "--", "true") })
	if err != nil {
		return err
	}
	row("create, first command and its commit, "+size, here, "bwrap", bwrap)
	if here, err = b.median(func(int) error { return litterbox("exec", "first", "--no-commit", "--", "true") }); err != nil {
		return err
	}
	row("exec without commit, "+size, here, "bwrap", bwrap)
	if here, err = b.median(func(int) error { return litterbox("exec", "first", "--", "true") }); err != nil {
		return err
	}
	row("exec with commit, "+size, here, "bwrap", bwrap)
	if err := b.mcp(repo, size, here); err != nil {
		return err
	}
	if err := b.tenFiles(repo, size, litterbox); err != nil {
		return err
	}
	if err := b.memory(size); err != nil {
		return err
	}
	names := []string{"delete", "--force", "first"}
	for i := range b.rounds {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	return litterbox(names...)
}

// tenFiles changes ten files and commits: inside with exec, and beside it in
// a worktree with git add and git commit.
func (b *bench) tenFiles(repo, size string, litterbox func(...string) error) error {
	script := "for i in 0 1 2 3 4 5 6 7 8 9; do echo change >> dir0/file$i.txt; done"
	here, err := b.median(func(int) error { return litterbox("exec", "first", "--", "sh", "-c", script) })
	if err != nil {
		return err
	}
	tree := filepath.Join(b.dir, "tree"+size)
	other, err := b.median(func(int) error {
		return b.command(tree, "sh", "-c", script+"; git add -A && git commit -qm change")
	})
	row("change ten files and commit, "+size, here, "git add, git commit", other)
	return err
}

// memory prints the proportional set size of the idle sandbox "first".
func (b *bench) memory(size string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var total, processes int
	for _, entry := range entries {
		comm, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || !bytes.HasPrefix(comm, []byte("litterbox-guest\x00")) {
			continue
		}
		rollup, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "smaps_rollup"))
		if err != nil {
			continue // not ours to read
		}
		for line := range strings.Lines(string(rollup)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
				kib, err := strconv.Atoi(fields[1])
				if err != nil {
					return err
				}
				total += kib
				processes++
			}
		}
	}
	sandboxes := b.rounds + 1
	fmt.Printf("| memory of an idle sandbox (PSS of %d processes over %d sandboxes), %s | %.1f MB | – | |\n",
		processes, sandboxes, size, float64(total)/1024/float64(sandboxes))
	return nil
}
