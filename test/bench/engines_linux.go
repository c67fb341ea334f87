package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/engine"
)

// The names of rows with a target, which begin with the name of an engine.
const (
	whatBoxFirst  = "create, first command and its commit in a new container of "
	whatBoxNext   = "create, first command and its commit in a container of "
	whatBoxCreate = "create in a container of "
	whatBoxExec   = "exec without commit in a container of "
	whatBoxTen    = "change ten files and commit in a container of "
)

// tool is the one program of the image: it does nothing, waits, or changes ten files.
const tool = `package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	switch {
	case len(os.Args) < 2:
	case os.Args[1] == "wait":
		time.Sleep(24 * time.Hour)
	default:
		for i := range 10 {
			file, err := os.OpenFile(fmt.Sprintf("dir0/file%d.txt", i), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = file.WriteString("change\n")
			}
			if err != nil {
				panic(err)
			}
		}
	}
}
`

// boxRounds is how often one thing is done on an engine.
const boxRounds = 5

// boxes is an engine of containers.
type boxes struct {
	*bench
	driver string
	client []string // the engine's own
}

// engines measures sandboxes in containers, beside the engine's own commands: of the
// engines that answer, and run by root also of those that can be started.
func (b *bench) engines() error {
	if err := b.build("tool", tool); err != nil {
		return err
	}
	var all []error
	for _, one := range []struct {
		driver string
		client []string
		needs  []string
		start  func(t *bed) *engine.Engine
	}{
		{"docker", []string{"docker"}, engine.DockerNeeds, func(t *bed) *engine.Engine {
			return engine.Docker(t, engine.NewWorld(t, "true"), engine.Dir(t), nil, nil)
		}},
		{"podman", podman(), engine.PodmanNeeds, func(t *bed) *engine.Engine {
			return engine.Podman(t, engine.NewWorld(t, "true"), engine.Dir(t))
		}},
	} {
		at := *b
		found := boxes{&at, one.driver, one.client}
		answers := func() error { return b.command(b.dir, b.litterbox, "doctor", "--driver", one.driver) }
		if missing := lacking(one.needs); answers() == nil {
			all = append(all, found.measured())
		} else if os.Geteuid() != 0 {
			b.report.missing("%s: none answers", one.driver)
		} else if missing != "" {
			b.report.missing("%s: none answers, and to start one %s is not installed", one.driver, missing)
		} else {
			all = append(all, found.begun(one.start))
		}
	}
	return errors.Join(all...)
}

// podman returns a client for the Podman that litterbox finds.
func podman() []string {
	if os.Getenv("CONTAINER_HOST") != "" {
		return []string{"podman", "--remote"}
	}
	return []string{"podman"}
}

// lacking returns the first program that is not installed.
func lacking(names []string) string {
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	return ""
}

// begun measures an engine that is started for it.
func (e boxes) begun(start func(*bed) *engine.Engine) (err error) {
	t := &bed{}
	defer func() {
		if said := recover(); said != nil {
			e.report.missing("%s: %s", e.driver, e.readable(fmt.Errorf("%v", said)))
		}
		t.end()
	}()
	started := start(t)
	e.client = started.Command
	e.env = append(e.env[:len(e.env):len(e.env)], started.Env())
	return e.measured()
}

// measured measures an engine that answers.
func (e boxes) measured() (err error) {
	image := fmt.Sprintf("litterbox-bench-tool:%d", os.Getpid())
	if err := e.imported(e.client, image, map[string]string{"bin/tool": filepath.Join(e.dir, "tool")}); err != nil {
		e.report.missing("%s: %s", e.driver, e.readable(err))
		return nil
	}
	config := filepath.Join(e.dir, e.driver+"-config")
	e.env = append(e.env[:len(e.env):len(e.env)], "XDG_CONFIG_HOME="+config)
	settings := fmt.Sprintf("driver = %q\n[container]\nbase-image = %q\n", e.driver, image)
	repo := filepath.Join(e.dir, e.driver+"-repo")
	err = errors.Join(os.MkdirAll(filepath.Join(config, "litterbox"), 0o755), os.Mkdir(repo, 0o755))
	if err == nil {
		err = os.WriteFile(filepath.Join(config, "litterbox", "config.toml"), []byte(settings), 0o600)
	}
	if err == nil {
		err = e.fill(repo, e.sizes[0])
	}
	if err != nil {
		return err
	}
	engine := func(args ...string) error { return e.command(repo, slices.Concat(e.client, args)...) }
	litterbox := func(args ...string) error { return e.command(repo, append([]string{e.litterbox}, args...)...) }
	waits := fmt.Sprintf("litterbox-bench-%d", os.Getpid())
	// The engine may be of a test's own, which has no network to give.
	if err := engine("run", "--detach", "--name", waits, "--network", "none", image, "/bin/tool", "wait"); err != nil {
		e.report.missing("%s: %s", e.driver, e.readable(err))
		return engine("rmi", image)
	}
	defer func() {
		err = join(err, e.deleteAll(), litterbox("trash", "empty", "--all", "--yes"), litterbox("prune", "--all", "--yes"), engine("rm", "--force", waits), engine("rmi", image))
	}()
	runs := func() error { return engine("run", "--rm", "--network", "none", image, "/bin/tool") }
	if err := e.cold(litterbox, runs); err != nil {
		return err
	}
	if err := litterbox("create", "box"); err != nil {
		return err
	}
	few := *e.bench
	few.rounds = min(e.rounds, boxRounds)
	timings, err := few.measure(
		func(i int) error { return litterbox("run", fmt.Sprintf("first%d", i), "--", "/bin/tool") },
		func(i int) error { return litterbox("create", fmt.Sprintf("box%d", i)) },
		func(int) error { return runs() },
		func(int) error { return litterbox("exec", "box", "--no-commit", "--", "/bin/tool") },
		func(int) error { return engine("exec", waits, "/bin/tool") },
		func(int) error { return litterbox("exec", "box", "--", "/bin/tool", "change") },
	)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("%d files", e.sizes[0])
	run, exec := "`"+e.driver+" run`", "`"+e.driver+" exec`"
	e.timed(whatBoxNext+e.driver, where, timings[0], run, timings[2])
	e.timed(whatBoxCreate+e.driver, where, timings[1], run, timings[2])
	e.timed(whatBoxExec+e.driver, where, timings[3], exec, timings[4])
	e.timed(whatBoxTen+e.driver, where, timings[5], exec, timings[4])
	return e.streams("in a container of "+e.driver, nil, e.driver+"-streams")
}

// cold measures the first sandbox of a container, which is made for it, with its
// volume.
func (e boxes) cold(litterbox func(...string) error, runs func() error) error {
	var here, beside []time.Duration
	for i := range min(e.rounds, keptRounds) {
		name := fmt.Sprintf("cold%d", i)
		first, err := clocked(func() error { return litterbox("run", name, "--", "/bin/tool") })
		if err != nil {
			return err
		}
		other, err := clocked(runs)
		if err = join(err, litterbox("delete", "--force", "--purge", name), litterbox("prune", "--all", "--yes")); err != nil {
			return err
		}
		here, beside = append(here, first), append(beside, other)
	}
	e.timed(whatBoxFirst+e.driver, fmt.Sprintf("%d files", e.sizes[0]), timingOf(here), "`"+e.driver+" run`", timingOf(beside))
	return nil
}
