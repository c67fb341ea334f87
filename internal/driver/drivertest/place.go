package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// What every place of the contract looks like inside. The paths exist on no
// host, which exposes a driver that shows the host's own.
const (
	workspacePath = "/contract/project"
	homePath      = "/contract/home"
	mountedDir    = "/contract/home/tools"
	sharedDir     = "/contract/shared"
	mountedFile   = "/contract/home/tool.conf"
)

// place is one acquired place and its spec.
type place struct {
	driver driver.Driver
	spec   driver.Spec
	keys   wire.Keys
	lease  driver.Lease
	held   bool // acquired and not destroyed
}

// with acquires a place, gives it to use, and takes it away again.
func with(ctx context.Context, env *Env, id string, use func(*place) error) error {
	p, err := acquire(ctx, env, env.Driver(), id)
	if err != nil {
		return err
	}
	return errors.Join(use(p), p.end(ctx))
}

func acquire(ctx context.Context, env *Env, d driver.Driver, id string) (*place, error) {
	p, err := plan(env, d, id)
	if err != nil {
		return nil, err
	}
	return p, p.acquire(ctx)
}

func (p *place) acquire(ctx context.Context) error {
	lease, err := p.driver.Acquire(ctx, p.spec)
	if err != nil {
		return wrong("cannot acquire a place: %v", err)
	}
	p.lease, p.held = lease, true
	return nil
}

// mountless reports whether the driver's places have their files at the host's
// paths.
func (p *place) mountless() bool { return p.driver.Traits().Mounts == sandbox.MountsSamePath }

// end destroys a place that is still held, so that a check that is not about
// Destroy does not depend on its finer points.
func (p *place) end(ctx context.Context) error {
	if !p.held {
		return nil
	}
	return p.destroy(ctx, true)
}

func (p *place) destroy(ctx context.Context, force bool) error {
	p.held = false
	if err := p.driver.Destroy(context.WithoutCancel(ctx), p.lease, force); err != nil {
		return wrong("cannot destroy the place (force %t): %v", force, err)
	}
	return nil
}

// plan makes the directories of a sandbox as the engine would, and its Spec.
// A second plan for the same id finds the first one's files.
func plan(env *Env, d driver.Driver, id string) (*place, error) {
	keys, err := wire.NewKeys()
	if err != nil {
		return nil, err
	}
	// Unique to this process: another test that uses the same id would take over
	// what a machine keeps by it, like control groups.
	sandboxID := id + "-" + strconv.Itoa(os.Getpid())
	own := d.Ownership(sandboxID)
	dir := filepath.Join(env.Dir, id)
	spec := driver.Spec{
		SandboxID: sandboxID, Name: "contract-" + id, StateDir: filepath.Join(dir, "state"),
		Workspace: driver.Workspace{
			Path:   workspacePath,
			Layers: []string{filepath.Join(dir, "layers", "top"), filepath.Join(dir, "layers", "bottom")},
			Upper:  filepath.Join(dir, "state", "upper"),
			Work:   filepath.Join(dir, "state", "work"),
		},
		Home: homePath,
		User: driver.User{Name: "contractor", UID: own.UID, GID: own.GID, Shell: "/bin/sh"},
		Mounts: []driver.Mount{
			{Source: filepath.Join(dir, "tools"), Target: mountedDir},
			{Source: filepath.Join(dir, "tool.conf"), Target: mountedFile},
			{Source: filepath.Join(dir, "shared"), Target: sharedDir, Writable: true},
		},
		Env: map[string]string{
			"HOME": homePath, "USER": "contractor", "PATH": "/usr/local/bin:/usr/bin:/bin",
			"CONTRACT": "spaces, = signs and ünïcode", "EMPTY": "",
		},
		GuestKey: keys.GuestPrivate, HostKey: keys.HostPublic, Degraded: !d.Capabilities().Full(),
	}
	p := &place{driver: d, spec: spec, keys: keys}
	if d.Traits().Mounts != sandbox.MountsAny {
		p.spec.Mounts = nil
	}
	how, _ := d.Carriage(context.Background(), env.Dir)
	_, err = os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = furnish(dir, spec, own)
		if err == nil && how == sandbox.CarriageCopy {
			err = fill(spec.Workspace, own)
		}
	}
	if how == sandbox.CarriageCopy {
		p.spec.Workspace.Layers = nil
	}
	return p, err
}

// fill copies the layers into the upper directory, as the engine would.
func fill(w driver.Workspace, own driver.Ownership) error {
	for _, files := range []map[string]string{bottomLayer, topLayer} {
		for name, content := range files {
			path := filepath.Join(w.Upper, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				return err
			}
		}
	}
	return chown(w.Upper, own.UpperUID, own.UpperGID)
}

// The files below the workspace, by layer.
var (
	topLayer    = map[string]string{"both.txt": "top\n", "dir/top.txt": "only top\n", "gone.txt": "to be removed\n"}
	bottomLayer = map[string]string{"both.txt": "bottom\n", "dir/bottom.txt": "only bottom\n", "changed.txt": "before\n"}
)

func furnish(dir string, spec driver.Spec, own driver.Ownership) error {
	for _, tree := range []struct {
		root  string
		files map[string]string
		chown bool
	}{
		{spec.Workspace.Layers[0], topLayer, own.ChownLayers},
		{spec.Workspace.Layers[1], bottomLayer, own.ChownLayers},
		{dir, map[string]string{"tools/tool": "a tool\n", "tool.conf": "a setting\n", "shared/note": "from the host\n"}, false},
	} {
		for name, content := range tree.files {
			path := filepath.Join(tree.root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				return err
			}
		}
		if tree.chown {
			if err := chown(tree.root, own.UID, own.GID); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(spec.Workspace.Upper, 0o755); err != nil {
		return err
	}
	return chown(spec.Workspace.Upper, own.UpperUID, own.UpperGID)
}

func chown(root string, uid, gid int) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// connect opens a wire through d, which may be another value than the one
// that acquired.
func (p *place) connect(ctx context.Context, d driver.Driver) (*wire.Link, error) {
	conn, err := d.Dial(ctx, p.lease)
	if err != nil {
		return nil, wrong("cannot dial the place: %v", err)
	}
	link, err := wire.Connect(ctx, conn, p.keys.HostPrivate, p.keys.GuestPublic)
	if err != nil {
		return nil, wrong("cannot talk over the dialled wire: %v", err)
	}
	return link, nil
}

// over opens a wire for one use.
func (p *place) over(ctx context.Context, use func(wire.Stream) error) error {
	link, err := p.connect(ctx, p.driver)
	if err != nil {
		return err
	}
	return errors.Join(on(link, use), link.Close())
}

func on(link *wire.Link, use func(wire.Stream) error) error {
	stream, err := link.Open()
	if err != nil {
		return wrong("cannot open a stream: %v", err)
	}
	defer stream.Close()
	return use(stream)
}

func (p *place) greet(ctx context.Context) (hello wire.Hello, err error) {
	err = p.over(ctx, func(s wire.Stream) error {
		hello, err = wire.Greet(ctx, s)
		return err
	})
	return hello, err
}

// read and write are OpRead and OpWrite on a fresh wire.
func (p *place) read(ctx context.Context, path string) (string, error) {
	var content bytes.Buffer
	err := p.over(ctx, func(s wire.Stream) error {
		_, err := wire.Read(ctx, s, []byte(path), 0, 0, &content)
		return err
	})
	return content.String(), err
}

func (p *place) write(ctx context.Context, path, content string) error {
	return p.over(ctx, func(s wire.Stream) error {
		_, err := wire.Write(ctx, s, []byte(path), 0, strings.NewReader(content))
		return err
	})
}

// wants reads a file inside and compares.
func (p *place) wants(ctx context.Context, path, content string) error {
	got, err := p.read(ctx, path)
	if err != nil {
		return wrong("cannot read %s inside: %v", path, err)
	}
	if got != content {
		return wrong("%s holds %q inside, want %q", path, got, content)
	}
	return nil
}

type command struct {
	argv  []string
	stdin string
}

type answer struct {
	exit           wire.Exit
	stdout, stderr string
}

// run executes on a fresh wire.
func (p *place) run(ctx context.Context, argv ...string) (answer, error) {
	link, err := p.connect(ctx, p.driver)
	if err != nil {
		return answer{}, err
	}
	got, err := execute(ctx, link, command{argv: argv})
	return got, errors.Join(err, link.Close())
}

// prints runs a command that must succeed, and returns its output.
func (p *place) prints(ctx context.Context, argv ...string) (string, error) {
	got, err := p.run(ctx, argv...)
	if err == nil && got.exit.Code != 0 {
		err = wrong("%q exited %d inside: %s", argv, got.exit.Code, got.stderr)
	}
	return got.stdout, err
}

// connecting is a command that connects to an address: with bash, which then uses
// descriptor 3, or with the nc of an image that has no bash. nc has a verb for the
// address.
func connecting(to, then, nc string) []string {
	host, port, _ := strings.Cut(to, ":")
	return []string{"sh", "-c", "command -v bash >/dev/null && exec bash -c 'exec 3<>/dev/tcp/" + host + "/" + port + then + "'; " + fmt.Sprintf(nc, host+" "+port)}
}

// notFound is the exit code of a shell whose command does not exist.
const notFound = 127

func execute(ctx context.Context, link *wire.Link, c command) (got answer, err error) {
	request := wire.Exec{}
	for _, arg := range c.argv {
		request.Argv = append(request.Argv, []byte(arg))
	}
	var stdout, stderr bytes.Buffer
	err = on(link, func(s wire.Stream) error {
		got.exit, err = wire.Run(ctx, s, request, wire.Streams{Stdin: strings.NewReader(c.stdin), Stdout: &stdout, Stderr: &stderr})
		return err
	})
	if err != nil {
		err = wrong("cannot run %q inside: %v", c.argv, err)
	}
	got.stdout, got.stderr = stdout.String(), stderr.String()
	return got, err
}
