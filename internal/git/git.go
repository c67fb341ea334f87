package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// oldestGit is named in the hint when git is missing or does not know an
// option this package needs (rev-parse --path-format came with 2.31).
const oldestGit = "2.31"

// TooOld reports whether git of that version, as `git version` prints it, is
// older. An unreadable version is tried.
func TooOld(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major < 2 || major == 2 && minor < 31
}

// Command is one git process. Its environment holds none of the GIT_* variables
// that redirect git (a hook of the user's may run us with GIT_INDEX_FILE set),
// and its configuration runs no hooks, file system monitor or garbage collection.
type Command struct {
	GitDir  string   // GIT_DIR; empty lets git discover it from dir
	Dir     string   // working directory; empty is GitDir, whose path no sandbox chose
	Private bool     // GitDir is ours: no configuration but its own may be read
	Config  []string // further -c key=value
	Env     []string // further K=V
	Args    []string
	Stdin   io.Reader
	Stdout  io.Writer // nil: collected and returned by Output
	Files   []*os.File
	Plain   bool   // the user's own git: none of our -c, the user's environment
	Umask   bool   // run under umask 022
	Idle    bool   // use only idle resources
	Trusted bool   // reads only the human's repository; no bounds
	Modest  bool   // with settings that need little memory
	Tight   Bounds // instead of the usual ones
}

// quiet is passed to every process of ours, so that the user's configuration
// cannot make it run anything.
var quiet = [...]string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false",
}

// Failure is a git process that ended with a status other than 0.
type Failure struct {
	Verb   string
	Code   int
	Stderr string
	Disk   error // the disk's error; nil if the disk was not the cause
}

// Unwrap returns the disk's error.
func (f *Failure) Unwrap() error { return f.Disk }

func (f *Failure) Error() string {
	text := strings.TrimSpace(f.Stderr)
	if i := strings.LastIndex(text, "fatal: "); i >= 0 {
		text = text[i+len("fatal: "):]
	}
	if line, _, more := strings.Cut(text, "\n"); more {
		text = line
	}
	switch {
	case text == "" && f.Code < 0:
		return "git " + f.Verb + " was killed"
	case text == "":
		return "git " + f.Verb + " ended with an error"
	}
	return "git " + f.Verb + ": " + Printable(text)
}

// Printable drops control characters: git's messages quote names that a
// sandbox may have chosen, and errors are printed on terminals.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, s)
}

// Cmd prepares the process.
func (c Command) Cmd(ctx context.Context) (*exec.Cmd, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fault.New(fault.Unavailable, "cannot find git in PATH").
			WithHint("install git %s or newer", oldestGit)
	}
	var argv []string
	if !c.Plain {
		for _, setting := range quiet {
			argv = append(argv, "-c", setting)
		}
	}
	if c.Modest {
		for _, setting := range modest {
			argv = append(argv, "-c", setting)
		}
	}
	for _, setting := range c.Config {
		argv = append(argv, "-c", setting)
	}
	argv = append(argv, c.Args...)
	cmd := exec.CommandContext(ctx, git, argv...)
	if c.Umask {
		// Go cannot set the umask of a child, and ours is process-wide.
		argv = append([]string{"-c", `umask 022 && exec "$0" "$@"`, git}, argv...)
		cmd = exec.CommandContext(ctx, "/bin/sh", argv...)
	}
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = c.GitDir
	}
	cmd.Env = c.environment(caller.Of(ctx).Env)
	cmd.Stdin, cmd.Stdout = c.Stdin, c.Stdout
	cmd.ExtraFiles = c.Files
	if !c.Plain {
		// Ctrl-C on a terminal reaches everything in the foreground. The context
		// decides whether git goes on, or an interrupted command would lose its
		// commit.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	return cmd, nil
}

// environment is the part of the caller's environment that the process gets.
func (c Command) environment(callers []string) []string {
	if c.Plain {
		return append(append([]string{}, callers...), c.Env...) // never nil, which is this process's own
	}
	env := []string{}
	for _, kv := range callers {
		key, _, _ := strings.Cut(kv, "=")
		switch {
		case key == "GIT_CONFIG_GLOBAL", key == "GIT_CONFIG_SYSTEM", key == "GIT_CONFIG_NOSYSTEM",
			key == "GIT_EXEC_PATH":
			// The places of the user's own configuration and of git itself.
		case strings.HasPrefix(key, "GIT_"), key == "LC_ALL", key == "LANGUAGE":
			continue
		}
		if c.Private && (key == "HOME" || key == "XDG_CONFIG_HOME" || strings.HasPrefix(key, "GIT_CONFIG_")) {
			continue
		}
		env = append(env, kv)
	}
	env = append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1")
	if c.Private {
		// git before 2.32 does not know GIT_CONFIG_GLOBAL, hence HOME as well.
		env = append(env, "HOME=/dev/null", "XDG_CONFIG_HOME=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_ATTR_NOSYSTEM=1")
	}
	if c.GitDir != "" {
		env = append(env, "GIT_DIR="+c.GitDir)
	}
	return append(env, c.Env...)
}

// Output runs the process and returns what it printed, also beside an error.
func (c Command) Output(ctx context.Context) ([]byte, error) {
	cmd, err := c.Cmd(ctx)
	if err != nil {
		return nil, err
	}
	b, _ := c.bounds()
	out, stderr := collected{limit: b.output}, Messages{}
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	// A process that ends with its caller ends with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	wait, err := c.Start(cmd)
	if err == nil {
		if c.Idle {
			process.MakeIdle(cmd.Process.Pid)
		}
		err = wait()
	}
	if out.over != nil {
		return nil, out.over
	}
	return out.buffer.Bytes(), c.Failure(ctx, err, stderr.String())
}

// Line is Output for commands that answer with one line.
func (c Command) Line(ctx context.Context) (string, error) {
	out, err := c.Output(ctx)
	return strings.TrimSuffix(string(out), "\n"), err
}

func (c Command) Failure(ctx context.Context, err error, stderr string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, ctx.Err(), "cannot finish git %s", c.Verb())
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if why := c.exceeded(exit, stderr); why != nil {
			return why
		}
		return &Failure{Verb: c.Verb(), Code: exit.ExitCode(), Stderr: stderr, Disk: diskTrouble(stderr, cmp.Or(c.GitDir, c.Dir))}
	}
	return fault.Wrap(fault.Internal, err, "cannot run git %s", c.Verb())
}

func (c Command) Verb() string {
	if len(c.Args) == 0 {
		return ""
	}
	return c.Args[0]
}

// ExitCode returns the status with which git ended, -1 if err is something else.
func ExitCode(err error) int {
	var f *Failure
	if errors.As(err, &f) {
		return f.Code
	}
	return -1
}
