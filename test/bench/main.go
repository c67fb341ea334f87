// Command bench measures litterbox beside what users would pick instead, on
// the same machine in the same run, and prints ratios. It is not a test:
// nothing fails for being slow.
package main

import (
	"bytes"
	"errors"
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
	if len(os.Args) >= 3 && os.Args[1] == callsWord {
		if err := runCalls(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "calls:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 5 && os.Args[1] == loadWord {
		if err := runLoad(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.program, "litterbox", "bin/litterbox", "the program to measure")
	flag.IntVar(&o.rounds, "rounds", 15, "repetitions of each measurement; the median counts")
	sizes := flag.String("files", "100,15000,100000", "sizes of the repositories, in files")
	flag.IntVar(&o.running, "sandboxes", 500, "how many sandboxes run at rest")
	flag.IntVar(&o.records, "records", 1000, "how many sandboxes list looks at, those at rest among them")
	flag.IntVar(&o.ignored, "ignored", 100000, "how many ignored files lie beside a commit")
	flag.StringVar(&o.page, "o", "", "also write the page of the documentation to this file")
	only := flag.String("only", "", "measure these `parts` alone, with commas between: "+strings.Join(names(), " "))
	quick := flag.Bool("quick", false, "small sizes and few rounds, to try the measurements themselves")
	flag.BoolVar(&o.network, "network", false, "measure the network, or with -only agents the agents, alone and in a network of its own")
	flag.BoolVar(&o.small, "small", false, "with -network: small sizes")
	flag.StringVar(&o.rows, "rows", "", "with -network: also write what was found to this file")
	flag.Parse()
	if *quick {
		*sizes, o.rounds, o.running, o.records, o.ignored, o.small = "100,1000", 3, 20, 40, 2000, true
	}
	var err error
	for _, size := range strings.Split(*sizes, ",") {
		count, failed := strconv.Atoi(size)
		err = join(err, failed)
		o.sizes = append(o.sizes, count)
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	code := 1
	if err == nil {
		code, err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

// options say what is measured, and how much of it.
type options struct {
	program                           string
	rounds, running, records, ignored int
	sizes                             []int
	small                             bool // also builds and unpacked archives
	page, rows                        string
	only                              []string
	network                           bool
}

type bench struct {
	options
	litterbox string
	dir       string
	env       []string
	others    []other
	report    *report
	smallest  map[string]timing // measurements in the first repository
	checkout  timing            // git's own, of the repository that is measured
	waiting   int               // memory of bwrap, in KiB
}

// part is one group of measurements.
type part struct {
	name string
	do   func(*bench) error
}

func parts() []part {
	return []part{
		{"version", (*bench).version},
		{"floors", (*bench).floors},
		{"repositories", (*bench).repositories},
		{"ignored", (*bench).ignoredFiles},
		{"durability", (*bench).durability},
		{"go-build", (*bench).goBuild},
		{"npm", (*bench).npm},
		{"untar", inMemory((*bench).untar)},
		{"creates", (*bench).creates},
		{"lifecycle", (*bench).lifecycle},
		{"snapshots", (*bench).snapshots},
		{"goldens", (*bench).goldens},
		{"environments", (*bench).environments},
		{"doors", inMemory((*bench).doors)},
		{"ports", (*bench).ports},
		{"network", (*bench).network},
		{"agents", (*bench).agents},
		{"machines", (*bench).machines},
		{"rest", (*bench).rest},
	}
}

func names() []string {
	var all []string
	for _, p := range parts() {
		all = append(all, p.name)
	}
	return all
}

func run(o options) (code int, err error) {
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			return 1, fmt.Errorf("there is no part %q; try -only %s", name, strings.Join(names(), ","))
		}
	}
	dir, err := os.MkdirTemp("", "litterbox-bench-")
	if err != nil {
		return 1, err
	}
	program, err := filepath.Abs(o.program)
	if err != nil {
		return 1, err
	}
	b := &bench{options: o, litterbox: program, dir: dir, report: &report{}, smallest: map[string]timing{}, env: append(
		append(os.Environ(), surroundings(dir)...), "GIT_CONFIG_GLOBAL="+filepath.Join(dir, "gitconfig"))}
	config := "[user]\n\tname = Bench\n\temail = bench@example.com\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(dir, "gitconfig"), []byte(config), 0o600); err != nil {
		return 1, err
	}
	if o.network {
		code, err = b.inWorld()
		return code, join(err, b.clear())
	}
	return 0, join(b.all(), b.clear())
}

// all measures every requested part, and writes the page.
func (b *bench) all() error {
	var all []error
	machine, start := b.machine(), time.Now()
	if err := b.hello(); err != nil {
		return err
	}
	b.findOthers()
	for _, p := range parts() {
		if len(b.only) > 0 && !slices.Contains(b.only, p.name) {
			continue
		}
		began := time.Now()
		if failed := p.do(b); failed != nil {
			// The other parts, and the page, are still worth having.
			b.report.missing("%s: %s", p.name, b.readable(failed))
			all = append(all, fmt.Errorf("%s: %w", p.name, failed), b.deleteAll())
		}
		fmt.Fprintf(os.Stderr, "bench: %s took %s\n", p.name, time.Since(began).Round(time.Second))
	}
	if b.page != "" {
		all = append(all, b.write(b.page, machine, time.Since(start)))
	}
	return errors.Join(append(all, b.endOthers())...)
}

// timing is the time of one step.
type timing struct{ median, best time.Duration }

// compare adds the line that reports whether the size of the repository matters.
func (b *bench) compare(what, size string, here timing) {
	small, known := b.smallest[what]
	if !known {
		b.smallest[what] = here
		return
	}
	b.timed(what, size, here, firstRepository, small)
}

// step is one of several things measured side by side.
type step func(i int) error

// measure runs every step rounds times, in turn, so that other work of the
// machine affects them alike.
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

// alternately runs two steps in turns, each as often first as second.
func (b *bench) alternately(rounds int, here, beside step) (timing, timing, error) {
	var took [2][]time.Duration
	for i := range rounds {
		for n := range 2 {
			which := (n + i) % 2
			start := time.Now()
			if err := []step{here, beside}[which](i); err != nil {
				return timing{}, timing{}, err
			}
			took[which] = append(took[which], time.Since(start))
		}
	}
	return timingOf(took[0]), timingOf(took[1]), nil
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

// hello builds the smallest Go program.
func (b *bench) hello() error {
	return b.build("hello", "package main\n\nfunc main() { println(\"hello\") }\n")
}

// build builds a Go program of one file.
func (b *bench) build(name, text string) error {
	source := filepath.Join(b.dir, name+".go")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(b.dir, name), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // with the user's own caches
	output, err := build.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot build a program to compare with: %w\n%s", err, output)
	}
	return nil
}

func (b *bench) version() error {
	timings, err := b.measure(
		func(int) error { return b.command(b.dir, b.litterbox, "version") },
		func(int) error { return b.command(b.dir, filepath.Join(b.dir, "hello")) },
	)
	if err == nil {
		b.timed("`litterbox version`", "", timings[0], "hello world in Go", timings[1])
	}
	return err
}

// fill makes a repository of count small files in directories of 100.
func (b *bench) fill(repo string, count int) error {
	if err := write(repo, count); err != nil {
		return err
	}
	for _, argv := range [][]string{{"git", "init", "-q"}, {"git", "add", "-A"}, {"git", "commit", "-qm", "first"}} {
		if err := b.command(repo, argv...); err != nil {
			return err
		}
	}
	return nil
}

// write makes small files, a hundred in each directory.
func write(dir string, count int) error {
	for i := range count {
		name := filepath.Join(dir, fmt.Sprintf("dir%d", i/100), fmt.Sprintf("file%d.txt", i))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(name, fmt.Appendf(nil, "file %d\nof a repository\n", i), 0o644); err != nil {
			return err
		}
	}
	return nil
}
