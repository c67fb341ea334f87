package world

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a server of the world that is a separate program.
type Process struct {
	mu     sync.Mutex
	output strings.Builder
}

// Write receives the program's output.
func (p *Process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(data)
}

// Output is what it has printed so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// Start runs a program in the world, as an ordinary user of that world, until
// the test ends.
func (w *World) Start(t testing.TB, env []string, argv ...string) *Process {
	t.Helper()
	p := &Process{}
	cmd := w.command(env, argv)
	cmd.Stdout, cmd.Stderr = p, p
	if err := w.place.do(cmd.Start); err != nil {
		t.Fatalf("cannot start %s: %v", argv[0], err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		timer := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait() // it was told to end
	})
	return p
}

// Do runs a program in the world to its end.
func (w *World) Do(t testing.TB, env []string, argv ...string) string {
	t.Helper()
	p := &Process{}
	cmd := w.command(env, argv)
	cmd.Stdout, cmd.Stderr = p, p
	err := w.place.do(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, p.Output())
	}
	return p.Output()
}

func (w *World) command(env, argv []string) *exec.Cmd {
	path, err := Find(argv[0])
	if err != nil {
		path = argv[0]
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Dir = w.Dir
	cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + w.Dir, "USER=" + serverUser, "LC_ALL=C.UTF-8"}, env...)
	// A user namespace within that of the user who runs the test: the same
	// rights on files under another number.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: serverID, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: serverID, HostID: os.Getegid(), Size: 1}},
		Setpgid:     true,
		Pdeathsig:   syscall.SIGKILL,
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Await waits until address accepts connections.
func (w *World) Await(t testing.TB, address string, p *Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		// Nothing signals when a foreign program has opened its port.
		select {
		case <-ctx.Done():
			t.Fatalf("nobody listens on %s: %v\n%s", address, err, p.Output())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
