package redteam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/redteam/probe"
)

// kind is a kind of place.
type kind int

const (
	machine   kind = iota // this one, in directories of the world
	bare                  // this one, in namespaces of its own with all capabilities
	wide                  // a sandbox without the limits
	sandboxed             // the target
)

// place is where an attack is tried.
type place struct {
	w   *world
	of  kind
	box string // the sandbox, where it is one
	dir string // the repository, where it is none
}

func (p place) inside() bool { return p.of == sandboxed }

// place returns the place that an attack needs: controls on the machine work
// on a copy of the repository.
func (w *world) place(ctx context.Context, a Attack, of kind) (place, error) {
	p := place{w: w, of: of, box: firstBox}
	w.count++
	switch {
	case of == machine || of == bare:
		p.box, p.dir = "", filepath.Join(w.base, fmt.Sprintf("control-%d", w.count))
		if got := w.run(ctx, w.base, "cp", "-R", w.plain, p.dir); got.code != 0 {
			return p, errors.New(got.said())
		}
	case of == wide || a.fresh || len(a.limits) > 0:
		p.box = fmt.Sprintf("attacker-%d", w.count)
		limits := a.limits
		if of == wide {
			limits = nil
		}
		if err := w.create(ctx, p.box, limits...); err != nil {
			return p, err
		}
	}
	return p, nil
}

// begun is printed before a script, so that a script which never ran is not
// taken for one that failed.
const begun = "litterbox-redteam-begun"

// shell runs a script.
func (p place) shell(ctx context.Context, script string) (result, error) {
	script = "echo " + begun + "\n" + script
	var got result
	switch p.of {
	case machine:
		got = p.w.run(ctx, p.dir, "/bin/sh", "-c", script)
	case bare:
		got = p.w.run(ctx, p.dir, p.w.probing("bareshell", script)...)
	default:
		got = p.w.litterbox(ctx, "exec", p.box, "--no-commit", "--", "/bin/sh", "-c", script)
	}
	rest, ok := strings.CutPrefix(got.stdout, begun+"\n")
	if !ok {
		return got, fmt.Errorf("the script did not run: %s", got.said())
	}
	got.stdout = rest
	return got, nil
}

// work runs a script whose changes litterbox commits.
func (p place) work(ctx context.Context, script string) (result, error) {
	if p.box == "" {
		return p.shell(ctx, script)
	}
	got := p.w.litterbox(ctx, "exec", p.box, "--", "/bin/sh", "-c", "echo "+begun+"\n"+script)
	if !strings.HasPrefix(got.stdout, begun+"\n") {
		return got, fmt.Errorf("the script did not run: %s", got.said())
	}
	return got, nil
}

// probe runs a verb of the probe and decodes its answer.
func (p place) probe(ctx context.Context, args ...string) (map[string]string, error) {
	got, err := p.probed(ctx, args...)
	if err != nil {
		return nil, err
	}
	answers := map[string]string{}
	if err := json.Unmarshal([]byte(got.stdout), &answers); err != nil {
		return nil, fmt.Errorf("the probe answered nothing: %s", got.said())
	}
	return answers, nil
}

// probed runs a verb of the probe, which may not survive it.
func (p place) probed(ctx context.Context, args ...string) (result, error) {
	switch p.of {
	case machine:
		return p.w.run(ctx, p.dir, p.w.probing(args...)...), nil
	case bare:
		return p.w.run(ctx, p.dir, p.w.probing(append([]string{"bare"}, args...)...)...), nil
	}
	// In the degraded tier there is no /tmp of its own.
	const brought = `"${TMPDIR:-/tmp}/` + probe.Name + `"`
	if got := p.w.litterbox(ctx, "exec", p.box, "--no-commit", "--", "/bin/sh", "-c", "test -x "+brought); got.code != 0 {
		where := p.w.litterbox(ctx, "exec", p.box, "--no-commit", "--", "/bin/sh", "-c", `printf %s "${TMPDIR:-/tmp}"`)
		if got := p.w.litterbox(ctx, "cp", p.w.program, p.box+":"+where.stdout+"/"+probe.Name); got.code != 0 {
			return got, fmt.Errorf("the probe cannot be brought in: %s", got.said())
		}
	}
	argv := append([]string{"exec", p.box, "--no-commit", "--", "/bin/sh", "-c", `exec ` + brought + ` "$@"`, "sh"}, args...)
	return p.w.litterbox(ctx, argv...), nil
}

// probing returns a command line of this program as the probe.
func (w *world) probing(args ...string) []string {
	return append([]string{filepath.Join(w.base, probe.Name)}, args...)
}

// result is the result of a command.
type result struct {
	code           int
	stdout, stderr string
}

// said returns the end of a command's output, on one line.
func (r result) said() string {
	text := strings.Join(strings.Fields(r.stderr+" "+r.stdout), " ")
	if len(text) > 300 {
		text = "…" + text[len(text)-300:]
	}
	return fmt.Sprintf("exit code %d: %s", r.code, text)
}

// litterbox runs this program in the repository, as a user types it.
func (w *world) litterbox(ctx context.Context, args ...string) result {
	return w.runWith(ctx, w.repo, nil, nil, append([]string{w.program}, args...)...)
}

func (w *world) run(ctx context.Context, dir string, argv ...string) result {
	return w.runWith(ctx, dir, nil, nil, argv...)
}

// runWith runs a command with more variables and descriptors. It has a process
// group of its own: a Ctrl-C on the terminal reaches us alone, and we end it.
func (w *world) runWith(ctx context.Context, dir string, env []string, files []*os.File, argv ...string) result {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if filepath.Base(argv[0]) == probe.Name {
		cmd = exec.CommandContext(ctx, w.program, argv[1:]...)
		cmd.Args[0] = probe.Name
	}
	var stdout, stderr bounded
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = dir, append(w.env, env...), &stdout, &stderr, files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	got := result{stdout: stdout.buffer.String(), stderr: stderr.buffer.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got.code = exit.ExitCode()
	case err != nil:
		got.code, got.stderr = -1, err.Error()
	}
	return got
}

// bounded keeps the first MiB of what is written to it.
type bounded struct{ buffer bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	const most = 1 << 20
	b.buffer.Write(p[:max(0, min(len(p), most-b.buffer.Len()))])
	return len(p), nil
}
