package redteam

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// world is a machine as litterbox sees it, with something to steal and
// something to touch: all of it in directories that are thrown away.
type world struct {
	base      string // everything below
	home      string
	state     string // XDG_STATE_HOME
	repo      string // a repository with one commit, on branch main
	plain     string // a copy of it, in which nothing works
	canary    string // anything here was made by something that ran on the machine
	program   string // this one
	secret    string // is in files of the home and beside the repository
	env       []string
	tier      tier
	driver    string
	isolation string

	made  []string // sandboxes
	count int      // of those with a name of their own
}

// newWorld makes it, with a first sandbox that shows the target. After an error
// it returns what must be cleaned up.
func newWorld(ctx context.Context, o Options) (*world, error) {
	chosen, known := o.chosen()
	if !known {
		return nil, fault.New(fault.Invalid, "cannot attack driver %q: there is no such driver", o.Driver).
			WithHint("litterbox redteam --driver %s", Drivers()[0])
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot find this program")
	}
	base, err := os.MkdirTemp("", "litterbox-redteam-")
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot make a directory for the attacks").WithHint("export TMPDIR=/a/directory/with/room")
	}
	below := func(name string) string { return filepath.Join(base, name) }
	w := &world{
		base: base, home: below("home"), state: below("state"), repo: below("src/project"), plain: below("plain"), canary: below("canary"),
		program: program, secret: "secret-" + rand.Text(), tier: chosen,
	}
	w.env = append([]string{
		"HOME=" + w.home, "XDG_STATE_HOME=" + w.state, "XDG_CONFIG_HOME=" + below("home/.config"), "XDG_CACHE_HOME=" + below("home/.cache"),
		"TMPDIR=" + below("tmp"), "PATH=" + o.Env("PATH"), "LANG=C.UTF-8", "TERM=dumb", "GIT_CONFIG_NOSYSTEM=1",
	}, w.tier.lend(o.Env)...)
	if o.Env("LITTERBOX_WORKSPACE") != "" { // copies instead of overlays, where asked for
		w.env = append(w.env, "LITTERBOX_WORKSPACE="+o.Env("LITTERBOX_WORKSPACE"))
	}
	if err := w.furnish(ctx); err != nil {
		return w, fault.Wrap(fault.Unavailable, err, "cannot prepare the attacks")
	}
	if err := w.reach(ctx, o); err != nil {
		return w, fault.Wrap(fault.Unavailable, err, "cannot reach what is to be attacked")
	}
	if err := w.create(ctx, firstBox); err != nil {
		return w, fault.Wrap(fault.Unavailable, err, "cannot make a sandbox to attack").WithHint("litterbox doctor")
	}
	status, err := w.status(ctx, firstBox)
	if err != nil {
		return w, fault.Wrap(fault.Internal, err, "cannot look at the sandbox to attack")
	}
	w.driver, w.isolation = status.Driver, status.Isolation
	if w.driver != w.tier.name {
		return w, fault.New(fault.Unavailable, "cannot attack driver %q: this machine takes %q", w.tier.name, w.driver).WithHint("litterbox doctor")
	}
	return w, nil
}

// furnish makes the directories and the repository. Others may read all of it:
// permissions are not the wall under test.
func (w *world) furnish(ctx context.Context) error {
	if err := os.Chmod(w.base, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{w.home, w.state, w.repo, w.canary, filepath.Join(w.base, "tmp")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(w.canary, 0o777); err != nil {
		return err
	}
	for path, content := range map[string]string{
		filepath.Join(w.home, ".gitconfig"):   "[user]\n\tname = litterbox redteam\n\temail = redteam@example.invalid\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgSign = false\n",
		filepath.Join(w.repo, "README"):       "hello\n",
		filepath.Join(w.repo, "src/main.txt"): "the program\n",
	} {
		if err := put(path, content); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "first"}} {
		if got := w.run(ctx, w.repo, append([]string{"git"}, args...)...); got.code != 0 {
			return fmt.Errorf("git %s: %s", args[0], got.said())
		}
	}
	// Later, keepers pack the commits of sandboxes in the repository: files come
	// and go there under a copy.
	if got := w.run(ctx, w.base, "cp", "-R", w.repo, w.plain); got.code != 0 {
		return errors.New(got.said())
	}
	return nil
}

func put(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

const firstBox = "attacker"

// create makes a sandbox with the probe in it.
func (w *world) create(ctx context.Context, name string, limits ...string) error {
	w.made = append(w.made, name)
	if got := w.litterbox(ctx, append([]string{"create", name}, w.tier.args...)...); got.code != 0 {
		return errors.New(got.said())
	}
	if len(limits) > 0 {
		if got := w.litterbox(ctx, append([]string{"limits", name}, limits...)...); got.code != 0 {
			return errors.New(got.said())
		}
	}
	return nil
}

// sandboxStatus is the output of `litterbox status --json`.
type sandboxStatus struct {
	Driver, Isolation string
	Lease             struct{ Handle string }
}

func (w *world) status(ctx context.Context, name string) (status sandboxStatus, err error) {
	got := w.litterbox(ctx, "status", name, "--json")
	if got.code != 0 {
		return status, errors.New(got.said())
	}
	return status, json.Unmarshal([]byte(got.stdout), &status)
}

// touched lists the files that appeared in the canary directory, and empties it.
func (w *world) touched() ([]string, error) {
	entries, err := os.ReadDir(w.canary)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		err = errors.Join(err, os.RemoveAll(filepath.Join(w.canary, entry.Name())))
	}
	return names, err
}

// end deletes every sandbox and then everything else.
func (w *world) end(ctx context.Context) error {
	failures := make([]error, len(w.made))
	var all sync.WaitGroup
	for i, name := range w.made {
		all.Go(func() { failures[i] = w.delete(ctx, name) })
	}
	all.Wait()
	err := errors.Join(failures...)
	if err == nil {
		err = w.unmake(ctx)
	}
	if err != nil {
		return err // processes that still run must not lose their files
	}
	// Files left by attacks may have no permissions.
	_ = filepath.WalkDir(w.base, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err := os.RemoveAll(w.base); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot remove the directory of the attacks").WithHint("rm -rf %s", w.base)
	}
	return nil
}

func (w *world) delete(ctx context.Context, name string) error {
	got := w.litterbox(ctx, "delete", "--force", name)
	const notFound = 3 // an interrupt came before it was made
	if got.code == 0 || got.code == notFound {
		return nil
	}
	return fault.New(fault.Internal, "cannot delete the throwaway sandbox %q: %s", name, got.said()).
		WithHint("env XDG_STATE_HOME=%s litterbox -C %s delete --force %s; rm -rf %s", w.state, w.repo, name, w.base)
}
