package guest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// box is a guest as PID 1 of namespaces of its own, over an overlay.
type box struct {
	t         *testing.T
	link      *wire.Link
	keys      wire.Keys
	socket    string
	dir       string // holds the rest
	workspace string // inside; the overlay is mounted there
	upper     string // on the host
	process   *exec.Cmd
}

// newBox starts a box. Each prepare gets the host's lower directory before that.
func newBox(t *testing.T, prepare ...func(lower string)) *box {
	t.Helper()
	b := prepareBox(t)
	for _, p := range prepare {
		p(filepath.Join(b.dir, "lower"))
	}
	b.start(stage{})
	return b
}

func prepareBox(t *testing.T) *box {
	t.Helper()
	dir, err := os.MkdirTemp("", "guest") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, dir: dir, workspace: filepath.Join(dir, "project"), upper: filepath.Join(dir, "upper")}
	for _, name := range []string{"lower", "upper", "work", "project", "home"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		// The overlay's own directory has no permissions at all.
		_ = os.Chmod(filepath.Join(dir, "work", "work"), 0o700)
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if b.keys, err = wire.NewKeys(); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *box) start(s stage) {
	b.t.Helper()
	s.Lower, s.Upper, s.Work = filepath.Join(b.dir, "lower"), b.upper, filepath.Join(b.dir, "work")
	s.Workspace, s.Home = b.workspace, filepath.Join(b.dir, "home")
	s.PrivateKey, s.Host = b.keys.GuestPrivate, b.keys.HostPublic
	s.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + s.Home, "LANG=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	text, err := json.Marshal(s)
	if err != nil {
		b.t.Fatal(err)
	}
	b.socket = filepath.Join(b.dir, "s")
	_ = os.Remove(b.socket)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: b.socket, Net: "unix"})
	if err != nil {
		b.t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	inherited, err := listener.File()
	if err != nil {
		b.t.Fatal(err)
	}
	listener.Close()
	ready, theirReady, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	defer ready.Close()

	cmd := exec.Command(ownPath(b.t))
	cmd.Env = []string{roleVariable + "=mount", "LITTERBOX_TEST_STAGE=" + string(text)}
	cmd.ExtraFiles = []*os.File{inherited, theirReady}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	const inner = 1000 // not root: an exec then drops every capability
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: inner, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: inner, HostID: os.Getgid(), Size: 1}},
		// The overlay keeps the rights of its mounter.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_MKNOD, unix.CAP_NET_ADMIN},
		Pdeathsig:   syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatalf("a guest needs user namespaces: %v", err)
	}
	b.process = cmd
	inherited.Close()
	theirReady.Close()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if b.t.Failed() && complaints.Len() > 0 {
			b.t.Logf("guest: %s", complaints.String())
		}
	})
	if n, err := ready.Read(make([]byte, 1)); n != 1 {
		_ = cmd.Wait()
		b.t.Fatalf("the guest did not start (%v): %s", err, complaints.String())
	}
	b.link = b.connect()
}

func (b *box) connect() *wire.Link {
	b.t.Helper()
	conn, err := net.Dial("unix", b.socket)
	if err != nil {
		b.t.Fatal(err)
	}
	link, err := wire.Connect(context.Background(), conn, b.keys.HostPrivate, b.keys.GuestPublic)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { link.Close() })
	return link
}

func (b *box) open() wire.Stream {
	b.t.Helper()
	s, err := b.link.Open()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	return s
}

// limit bounds a test that would otherwise hang.
func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func argv(words ...string) [][]byte {
	var out [][]byte
	for _, w := range words {
		out = append(out, []byte(w))
	}
	return out
}

// outcome is the result of a command, without details that differ between runs.
type outcome struct {
	Code   int
	Signal string
	Out    string
	Err    string
}

// run runs a command to its end.
func (b *box) run(command wire.Exec, stdin io.Reader) (wire.Exit, outcome) {
	b.t.Helper()
	s := b.open()
	defer s.Close()
	var stdout, stderr bytes.Buffer
	exit, err := wire.Run(limit(b.t), s, command, wire.Streams{Stdin: stdin, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		b.t.Fatalf("run %q: %v", command.Argv, err)
	}
	return exit, outcome{exit.Code, exit.Signal, stdout.String(), stderr.String()}
}

// sh runs a shell script that must succeed, and returns its output.
func (b *box) sh(script string) string {
	b.t.Helper()
	_, got := b.run(wire.Exec{Argv: argv("sh", "-euc", script)}, nil)
	if got.Code != 0 {
		b.t.Fatalf("%s\nexit %d: %s%s", script, got.Code, got.Out, got.Err)
	}
	return strings.TrimRight(got.Out, "\n")
}

// role runs this binary as an attacker or helper inside.
func (b *box) role(name string, env ...string) outcome {
	b.t.Helper()
	_, got := b.run(wire.Exec{Argv: argv(ownPath(b.t)), Env: append(env, roleVariable+"="+name)}, nil)
	return got
}

// eventually waits for a change inside that comes without an event.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
