package process_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// start runs a program that waits until its stdin is closed, under a name of
// the caller's choice, and does not reap it.
func start(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(cat, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), link)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, or waited for by the test
	})
	// An answer shows that it has passed execve and has its name.
	if _, err := stdin.Write([]byte("up\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

// awaitZombie waits until a child has ended, and leaves it unreaped.
func awaitZombie(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func TestOwnProcessIsAlive(t *testing.T) {
	t.Parallel()
	me, err := process.Identify(os.Getpid())
	if err != nil || me.PID != os.Getpid() || me.StartTime == 0 || len(me.Boot) != 36 {
		t.Fatalf("%+v, %v", me, err)
	}
	again, err := process.Identify(os.Getpid())
	if err != nil || again != me {
		t.Errorf("the second time %+v, %v", again, err)
	}
	if !process.Alive(me) {
		t.Error("it does not count as alive")
	}
}

func TestEndedProcess(t *testing.T) {
	t.Parallel()
	cmd := start(t, "cat")
	p, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !process.Alive(p) {
		t.Fatal("while it runs it does not count as alive")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// WNOWAIT: it has ended for certain, and is a zombie.
	if err := awaitZombie(p.PID); err != nil {
		t.Fatal(err)
	}
	if _, err := process.Identify(p.PID); err != nil {
		t.Fatalf("the zombie is not there: %v", err)
	}
	if process.Alive(p) {
		t.Error("as a zombie it counts as alive")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a killed process ended well")
	}
	if process.Alive(p) {
		t.Error("after it was reaped it counts as alive")
	}
	if found, err := process.Identify(p.PID); err == nil && found == p {
		t.Errorf("after it was reaped it is found: %+v", found)
	}
}

// A number that the kernel reused, and one recorded before a reboot, look like
// this: everything the same but one field.
func TestAnotherProcessOfThatNumber(t *testing.T) {
	t.Parallel()
	me, err := process.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	later, earlier, rebooted, unknown := me, me, me, me
	later.StartTime++
	earlier.StartTime--
	rebooted.Boot = "00000000-0000-4000-8000-000000000000"
	unknown.Boot = ""
	gone := me
	gone.PID = 1 << 30 // above any pid_max (proc(5): at most 2^22)
	zero, negative := me, me
	zero.PID, negative.PID = 0, -1
	for name, p := range map[string]sandbox.Process{
		"started later":   later,
		"started earlier": earlier,
		"of another boot": rebooted,
		"of no boot":      unknown,
		"no such number":  gone,
		"no number":       zero,
		"a process group": negative,
		"nothing":         {},
	} {
		if process.Alive(p) {
			t.Errorf("%s: it counts as alive", name)
		}
	}
}

// The name is in parentheses before the fields, and may contain some itself.
func TestNameOfAProcessDoesNotConfuse(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a) R 1 1 (", ") Z 0 (", "((((", "sp ace\nline"} {
		cmd := start(t, name)
		p, err := process.Identify(cmd.Process.Pid)
		if err != nil || !process.Alive(p) {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
		me, err := process.Identify(os.Getpid())
		if err != nil || p.StartTime < me.StartTime {
			t.Errorf("%q: started at %d, before this test at %d", name, p.StartTime, me.StartTime)
		}
	}
}

func TestIdentifyWithoutAProcess(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{0, -1, 1 << 30} {
		if p, err := process.Identify(pid); err == nil {
			t.Errorf("pid %d: %+v", pid, p)
		}
	}
}

// A socket's path has 108 bytes (unix(7)); a state directory can be deeper.
func TestShortPath(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if listener, err := net.Listen("unix", filepath.Join(deep, "socket")); err == nil {
		_ = listener.Close()
		t.Fatal("this machine takes a long path: the test shows nothing")
	}
	var listener net.Listener
	err := process.ShortPath(deep, func(short string) (err error) {
		listener, err = net.Listen("unix", filepath.Join(short, "socket"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if info, err := os.Stat(filepath.Join(deep, "socket")); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("in the directory: %v, %v", info, err)
	}
	accepted := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, err = conn.Write([]byte("hello"))
			_ = conn.Close()
		}
		accepted <- err
	}()
	err = process.ShortPath(deep, func(short string) error {
		conn, err := net.Dial("unix", filepath.Join(short, "socket"))
		if err != nil {
			return err
		}
		defer conn.Close()
		got := make([]byte, 5)
		if _, err := conn.Read(got); err != nil || string(got) != "hello" {
			t.Errorf("it says %q, %v", got, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-accepted; err != nil {
		t.Error(err)
	}
}

func TestShortPathErrors(t *testing.T) {
	t.Parallel()
	err := process.ShortPath(filepath.Join(t.TempDir(), "missing"), func(string) error {
		t.Error("it was called")
		return nil
	})
	if !os.IsNotExist(err) {
		t.Errorf("a missing directory: %v", err)
	}
	// The error of use is returned; its descriptor does not stay.
	var short string
	err = process.ShortPath(t.TempDir(), func(path string) error {
		short = path
		return syscall.EXDEV
	})
	if err == nil || !strings.Contains(err.Error(), syscall.EXDEV.Error()) {
		t.Errorf("the error of use: %v", err)
	}
	if len(short) > 40 {
		t.Errorf("%q is not short", short)
	}
}
