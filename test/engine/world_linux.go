package engine

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// World is a mount namespace that ends with the test. Engines mount their containers
// there, and any mounts they leave end with it. The zero value is that of the test.
type World struct{ path string }

// NewWorld makes one, and prepares it with a script.
func NewWorld(t testing.TB, script string) World {
	t.Helper()
	cmd := exec.Command("sh", "-c", "mount --make-rshared / && "+script+" && echo ready && exec cat") // ends with our end of its pipe
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("cannot prepare a mount namespace: %v", err)
	}
	return World{"/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/mnt"}
}

// Enter returns the start of a command line that runs in the world.
func (w World) Enter() []string {
	if w.path == "" {
		return nil
	}
	return []string{"nsenter", "--mount=" + w.path}
}

// serve begins a process in the world that ends with the test, or when stop is
// called. Its output goes to the file log.
func (w World) serve(t testing.TB, log string, command []string) (stop func()) {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	args := append([]string{"-c", `"$@" & cat; kill $!; wait`, "sh"}, w.Enter()...)
	cmd := exec.Command("sh", append(args, command...)...)
	cmd.Stdout, cmd.Stderr = out, out
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			_, _ = in.Close(), cmd.Wait()
		}
		stopped = true
	}
	t.Cleanup(stop)
	return stop
}

// await waits until ready succeeds.
func await(t testing.TB, log string, ready func() error) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		err := ready()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			said, _ := os.ReadFile(log)
			t.Fatalf("the engine did not answer within two minutes: %v\n%s", err, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
