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
	if len(os.Args) == 5 && os.Args[1] == loadWord {
		if err := runLoad(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
		return
	}
	program := flag.String("litterbox", "bin/litterbox", "the program to measure")
	rounds := flag.Int("rounds", 20, "repetitions of each measurement; the median counts")
	sizes := flag.String("files", "100,15000,100000", "sizes of the repositories, in files")
	many := flag.Int("sandboxes", 200, "how many sandboxes run while list and metrics are measured")
	network := flag.Bool("network", false, "measure the network alone")
	flag.Parse()
	code, err := run(*program, *rounds, strings.Split(*sizes, ","), *many, *network)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

type bench struct {
	litterbox string
	dir       string
	rounds    int
	env       []string
	smallest  map[string]timing // what was measured in the first repository
}

func run(program string, rounds int, sizes []string, many int, network bool) (code int, err error) {
	dir, err := os.MkdirTemp("", "litterbox-bench-")
	if err != nil {
		return 1, err
	}
	program, err = filepath.Abs(program)
	if err != nil {
		return 1, err
	}
	b := &bench{litterbox: program, dir: dir, rounds: rounds, smallest: map[string]timing{}, env: append(os.Environ(),
		"HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"GIT_CONFIG_GLOBAL="+filepath.Join(dir, "gitconfig"))}
	config := "[user]\n\tname = Bench\n\temail = bench@example.com\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(dir, "gitconfig"), []byte(config), 0o600); err != nil {
		return 1, err
	}
	if network {
		code, err = b.inWorld()
		return code, join(err, os.RemoveAll(dir))
	}
	fmt.Printf("| what | here | beside | ratio |\n|---|---|---|---|\n")
	if err := b.version(); err != nil {
		return 1, err
	}
	for _, size := range sizes {
		count, err := strconv.Atoi(size)
		if err != nil {
			return 1, err
		}
		if err := b.repository(count); err != nil {
			return 1, err
		}
	}
	if err := b.lifecycle(many); err != nil {
		return 1, err
	}
	if err := b.ports(); err != nil {
		return 1, err
	}
	if err := b.network(); err != nil {
		return 1, err
	}
	return 0, os.RemoveAll(dir)
}

// timing is what one step took.
type timing struct{ median, best time.Duration }

func (t timing) String() string {
	return fmt.Sprintf("%s (best %s)", milliseconds(t.median), milliseconds(t.best))
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// row prints one line of the table.
func row(what string, here timing, beside string, other timing) {
	ratio, name := "", "–"
	if other.median > 0 {
		ratio = fmt.Sprintf("%.2f ×", float64(here.median)/float64(other.median))
		name = fmt.Sprintf("%s %s", beside, other)
	}
	fmt.Printf("| %s | %s | %s | %s |\n", what, here, name, ratio)
}

// compare adds the line that says whether the size of the repository matters.
func (b *bench) compare(what, size string, here timing) {
	small, known := b.smallest[what]
	if !known {
		b.smallest[what] = here
		return
	}
	row(what+", "+size, here, "the same in the first repository", small)
}

// step is one of several things that are measured side by side.
type step func(i int) error

// measure runs every step rounds times, in turn, so that whatever else the
// machine does meanwhile meets them alike.
func (b *bench) measure(steps ...step) ([]timing, error) {
	all := make([][]time.Duration, len(steps))
	for i := range b.rounds {
		for n, step := range steps {
			start := time.Now()
			if err := step(i); err != nil {
				return nil, err
			}
			all[n] = append(all[n], time.Since(start))
		}
	}
	timings := make([]timing, len(steps))
	for n := range all {
		timings[n] = timingOf(all[n])
	}
	return timings, nil
}

func timingOf(all []time.Duration) timing {
	slices.Sort(all)
	return timing{median: all[len(all)/2], best: all[0]}
}

func (b *bench) command(dir string, argv ...string) error {
	_, err := b.output(dir, argv...)
	return err
}

func (b *bench) output(dir string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, b.env
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, output.String())
	}
	return output.String(), nil
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
	timings, err := b.measure(
		func(int) error { return b.command(b.dir, b.litterbox, "version") },
		func(int) error { return b.command(b.dir, hello) },
	)
	if err == nil {
		row("`litterbox version`", timings[0], "hello world in Go", timings[1])
	}
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
	_, err := exec.LookPath("bwrap")
	if err == nil {
		steps = append(steps, func(int) error {
			return b.command(repo, "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")
		})
	}
	timings, err := b.measure(steps...)
	if err != nil {
		return err
	}
	var bwrap timing
	if len(timings) > 3 {
		bwrap = timings[3]
	}
	for n, what := range []string{"create, first command and its commit", "exec without commit", "exec with commit"} {
		row(what+", "+size, timings[n], "bwrap", bwrap)
		b.compare(what, size, timings[n])
	}
	return b.mcp(repo, size)
}

// tenFiles changes ten files and commits: inside with exec, and beside it in
// a worktree with git add and git commit.
func (b *bench) tenFiles(repo, size string, litterbox func(...string) error) error {
	const what = "change ten files and commit"
	script := "for i in 0 1 2 3 4 5 6 7 8 9; do echo change >> dir0/file$i.txt; done"
	// One after the other: in a large repository git's own work would leave the
	// disk and the caches busy for whoever comes next.
	here, err := b.measure(func(int) error { return litterbox("exec", "first", "--", "sh", "-c", script) })
	if err != nil {
		return err
	}
	beside, err := b.measure(func(int) error {
		return b.command(b.tree(size), "sh", "-c", script+"; git add -A && git commit -qm change")
	})
	if err != nil {
		return err
	}
	row(what+", "+size, here[0], "git add, git commit", beside[0])
	b.compare(what, size, here[0])
	return nil
}
