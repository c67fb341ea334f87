// Package limactl drives Lima's program, limactl: each use case is one run of it,
// without a terminal, with its log as JSON lines. It knows what the program
// prints and how it fails, and nothing of outposts or sandboxes.
//
// Lima's Go packages are not used: they need cgo for Apple's virtualization, and
// users of Lima have the program. Start reading at [Client].
package limactl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Name is the program.
const Name = "limactl"

// Client runs limactl. It is safe for concurrent use; limactl itself is not
// when two runs change one instance.
type Client struct {
	// Env is the environment of the program: PATH, HOME, USER, and LIMA_HOME if it
	// is set. limactl is found in its PATH.
	Env []string
	// Note, when not nil, is told what limactl logs while it works, a line each.
	Note func(string)
}

// most bounds how much of an answer is kept: a listing has some 20 KiB for each
// instance.
const most = 32 << 20

// ending is how long limactl may take to end after it was interrupted.
const ending = 10 * time.Second

// Version returns the version of this Lima, for example "2.2.0".
func (c Client) Version(ctx context.Context) (string, error) {
	out, err := c.run(ctx, call{doing: "ask limactl for its version"}, "--version")
	if err != nil {
		return "", err
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "limactl version ")
	if !ok || version == "" || len(version) > 100 || strings.ContainsAny(version, "\n\x1b") {
		return "", fault.Wrap("", ErrStrange, "cannot read the version of limactl")
	}
	return version, nil
}

// Validate checks a template, with all that it is based on.
func (c Client) Validate(ctx context.Context, template string) error {
	about := call{doing: "use the configuration of the virtual machine", hint: "$EDITOR " + template, strict: true}
	_, err := c.run(ctx, about, "validate", "--fill", template)
	return err
}

// Create makes an instance from a template and leaves it stopped. It fails with
// [ErrExists] when one of that name exists.
func (c Client) Create(ctx context.Context, name, template string) error {
	_, err := c.run(ctx, call{doing: "create the virtual machine", name: name}, "create", "--name="+name, template)
	return err
}

// Start boots an instance and waits until its boot scripts have finished, up to
// patience.
func (c Client) Start(ctx context.Context, name string, patience time.Duration) error {
	// For an unknown name, limactl makes an instance from its own default: with
	// the home directory mounted.
	one, err := c.Find(ctx, name)
	if err != nil {
		return err
	}
	about := call{doing: "start the virtual machine", name: name}
	about.log = filepath.Join(one.Dir, "ha.stderr.log")
	_, err = c.run(ctx, about, "start", "--timeout="+patience.String(), name)
	return err
}

// Stop shuts an instance down. Force ends it as if its power were cut, and is no
// error if it does not run.
func (c Client) Stop(ctx context.Context, name string, force bool) error {
	args := []string{"stop", name}
	if force {
		args = []string{"stop", "--force", name}
	}
	_, err := c.run(ctx, call{doing: "stop the virtual machine", name: name}, args...)
	return err
}

// Delete ends an instance and removes everything in it. A missing one is no
// error.
func (c Client) Delete(ctx context.Context, name string) error {
	_, err := c.run(ctx, call{doing: "delete the virtual machine", name: name}, "delete", "--force", name)
	return err
}

// Clone copies a stopped instance.
func (c Client) Clone(ctx context.Context, from, to string) error {
	_, err := c.run(ctx, call{doing: "clone the virtual machine", name: from, to: to}, "clone", "--start=false", from, to)
	return err
}

// Edit changes the settings of a stopped instance. The expressions are yq's,
// for example ".cpus = 2".
func (c Client) Edit(ctx context.Context, name string, set ...string) error {
	args := []string{"edit", "--start=false"}
	for _, expression := range set {
		args = append(args, "--set="+expression)
	}
	_, err := c.run(ctx, call{doing: "change the virtual machine", name: name}, append(args, name)...)
	return err
}

// Test looks whether a path is there in an instance that runs.
func (c Client) Test(ctx context.Context, name, path string) error {
	_, err := c.run(ctx, call{doing: "look into the virtual machine", name: name}, "shell", "--workdir=/", name, "test", "-e", path)
	return err
}

// call describes a run for its errors.
type call struct {
	doing string // after "cannot"
	name  string // the instance
	to    string // the one that a clone becomes
	hint  string

	log    string // of what went on after limactl; may contain the cause
	strict bool   // a key that Lima does not know is an error, of which it only warns
}

// Path is the path of limactl.
func (c Client) Path() (string, error) {
	for _, dir := range filepath.SplitList(get(c.Env, "PATH")) {
		path := filepath.Join(dir, Name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fault.Wrap("", ErrNotInstalled, "cannot find limactl").WithHint("%s", Hint())
}

func get(env []string, name string) (value string) {
	for _, entry := range env {
		if key, v, ok := strings.Cut(entry, "="); ok && key == name {
			value = v
		}
	}
	return value
}

// run runs limactl once and returns what it printed.
func (c Client) run(ctx context.Context, about call, args ...string) ([]byte, error) {
	path, err := c.Path()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--tty=false", "--log-format=json"}, args...)...)
	cmd.Env = append(append([]string{}, c.Env...), "NO_COLOR=1")
	cmd.Dir = "/"
	out := &bounded{most: most}
	log := &logged{note: c.Note}
	cmd.Stdout, cmd.Stderr = out, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = ending
	apart(cmd)
	err = cmd.Run()
	log.end()
	if strange := log.unknown(); err == nil && about.strict && strange != "" {
		return nil, fault.Wrap("", fault.Wrap("", ErrConfig, "%s", strange), "cannot %s", about).WithHint("%s", about.hint)
	}
	switch {
	case err == nil && out.over:
		return nil, fault.Wrap("", ErrStrange, "cannot %s: limactl printed more than %d bytes", about.doing, most)
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // a process it left behind holds the pipes
		return out.kept.Bytes(), nil
	case ctx.Err() != nil:
		kind := fault.Canceled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = fault.Timeout
		}
		return nil, fault.Wrap(kind, ctx.Err(), "cannot %s", about)
	}
	return nil, failure(about, log, err)
}

func (c call) String() string {
	switch {
	case c.name == "":
		return c.doing
	case c.to != "":
		return c.doing + " \"" + c.name + "\" as \"" + c.to + "\""
	}
	return c.doing + " \"" + c.name + "\""
}

// bounded keeps the first bytes and takes all.
type bounded struct {
	kept bytes.Buffer
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.kept.Len()
	if len(p) > room {
		b.over = true
	}
	b.kept.Write(p[:min(len(p), max(room, 0))])
	return len(p), nil
}
