package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/installer"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// The files with which programs inside ask for packages, in the directory of a
// sandbox.
const (
	// InstallsFile says how packages are installed; without it they cannot be
	// asked for. The engine writes it before each start.
	InstallsFile = "installs.json"
	// InstallsDir is mounted in the sandbox as installer.Dir.
	InstallsDir = "installs"
)

// Installs is the content of InstallsFile.
type Installs struct {
	Program string `json:"program"` // litterbox itself
	Dir     string `json:"dir"`     // of the repository
}

// Bounds on what a sandbox can ask for.
const (
	maxInstalls        = 32  // in the life of a keeper: each is a layer on disk
	maxInstallPackages = 256 // at once
	installPatience    = 30 * time.Second
)

// installs lets programs inside ask for packages. litterbox itself installs them,
// as it does when a person types it, by the network rules of the sandbox.
type installs struct {
	k        *keeper
	with     Installs
	listener *net.UnixListener
	left     int
}

// openInstalls listens for programs of the sandbox, where packages can be
// installed.
func (k *keeper) openInstalls(ctx context.Context) error {
	dir := k.order.Spec.StateDir
	data, err := os.ReadFile(filepath.Join(dir, InstallsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	i := &installs{k: k, left: maxInstalls}
	if err == nil {
		err = seal.Decode(data, &i.with)
	}
	if errors.Is(err, seal.ErrDamaged) {
		fmt.Fprintln(os.Stderr, "keeper: programs of the sandbox cannot ask for packages:", err)
		return nil // the next start writes it again
	}
	if err == nil {
		i.listener, err = listenInside(filepath.Join(dir, InstallsDir), installer.Socket)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot let programs of sandbox %q ask for packages", k.order.Spec.Name)
	}
	go i.serve(ctx)
	context.AfterFunc(ctx, func() { _ = i.listener.Close() })
	return nil
}

// listenInside makes a socket in a directory that is mounted in the sandbox.
func listenInside(dir, name string) (listener *net.UnixListener, err error) {
	socket := filepath.Join(dir, name)
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = process.ShortPath(dir, func(short string) (err error) {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, name), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // its short path is gone by then
	// The sandbox connects to it, perhaps as another user; the directories above
	// let no other user of this machine in.
	return listener, os.Chmod(socket, 0o666)
}

// serve carries out one installation after the other.
func (i *installs) serve(ctx context.Context) {
	for {
		conn, err := i.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: some come free
			continue
		}
		if err := i.answer(ctx, conn); err != nil {
			_ = wire.Fail(conn, err) // it may be gone
		}
		_ = conn.Close()
	}
}

// answer reads the names of packages and has them installed.
func (i *installs) answer(ctx context.Context, conn net.Conn) error {
	if err := conn.SetReadDeadline(time.Now().Add(installPatience)); err != nil {
		return err
	}
	frames := wire.NewReader(conn)
	kind, payload, err := frames.Next()
	if err != nil {
		return err
	}
	var request wire.Request
	if kind != wire.KindRequest || json.Unmarshal(payload, &request) != nil || request.Op != wire.OpExec || request.Exec == nil ||
		len(request.Exec.Argv) == 0 || len(request.Exec.Argv) > maxInstallPackages {
		return fault.New(fault.Invalid, "cannot install packages: the request is malformed or has more than %d", maxInstallPackages)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	name := i.k.order.Spec.Name
	if i.left == 0 {
		return fault.New(fault.Denied, "cannot install packages in sandbox %q: it has asked %d times since it was started", name, maxInstalls).
			WithHint("litterbox install %s PACKAGE", name)
	}
	i.left--
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the program inside is gone when its end of the stream is
		for err := error(nil); err == nil; {
			_, _, err = frames.Next()
		}
		cancel()
	}()
	args := []string{"install", "--inside", "--", name}
	for _, one := range request.Exec.Argv {
		args = append(args, string(one))
	}
	to := wire.NewWriter(conn)
	command := exec.CommandContext(ctx, i.with.Program, args...)
	command.Dir = i.with.Dir
	command.Stdout, command.Stderr = output{conn, to, wire.KindStdout}, output{conn, to, wire.KindStderr}
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = installPatience
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fault.Wrap(fault.Unavailable, err, "cannot run litterbox to install packages in sandbox %q", name)
	}
	result := wire.Exit{}
	if exit != nil {
		result.Code = installer.Failed
	}
	return wire.WriteJSON(to, wire.KindResult, result)
}

// output is a stream of a command, as frames. A program that reads nothing ends
// the installation, which holds the sandbox's lock.
type output struct {
	conn net.Conn
	to   *wire.Writer
	kind wire.Kind
}

func (o output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), wire.MaxFrame)
		if err := o.conn.SetWriteDeadline(time.Now().Add(installPatience)); err != nil {
			return 0, err
		}
		if err := o.to.Frame(o.kind, rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(p), nil
}
