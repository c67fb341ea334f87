package seccomp_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
	"golang.org/x/sys/unix"
)

// under prepares this test binary as a child in one of the modes of child.
func under(t *testing.T, mode string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Under a wrong filter a child may spin, and would outlive the tests.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), childVariable+"="+mode, "HOME="+cmd.Dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	// Without a controlling terminal, which vhangup would end if it were allowed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// output runs cmd, which must succeed.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s%s", cmd.Args, err, &stdout, &stderr)
	}
	return stdout.String()
}

// need skips a test for what the machine lacks, and fails it if
// LITTERBOX_TEST_REQUIRE says that the machine has it.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if slices.Contains(strings.FieldsFunc(os.Getenv("LITTERBOX_TEST_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }), program) {
		t.Fatalf("%s is required and not installed", program)
	}
	t.Skipf("%s is not installed", program)
}

func TestKernelAnswersAsPromised(t *testing.T) {
	t.Parallel()
	arch, err := seccomp.Native()
	if err != nil {
		t.Fatal(err)
	}
	for _, nested := range []bool{false, true} {
		t.Run(fmt.Sprintf("nested=%t", nested), func(t *testing.T) {
			t.Parallel()
			var denied []sample
			var calls []rawCall
			var want []unix.Errno
			add := func(s sample, number uint32, errno unix.Errno) {
				denied, calls, want = append(denied, s), append(calls, rawCall{number, s.Args}), append(want, errno)
			}
			for _, s := range samples() {
				errno := s.Errno
				if nested {
					errno = s.Nested
				}
				if number := slices.Index(arch.Calls, s.Call); number >= 0 && errno != 0 {
					add(s, uint32(number), errno)
				}
			}
			for _, number := range []uint32{uint32(len(arch.Calls)), 600, 1<<30 - 1, 1 << 31} {
				add(sample{Call: fmt.Sprint("call ", number)}, number, unix.ENOSYS)
			}
			mode := "calls"
			if nested {
				mode = "calls-nested"
			}
			input, err := json.Marshal(calls)
			if err != nil {
				t.Fatal(err)
			}
			cmd := under(t, mode)
			cmd.Stdin = bytes.NewReader(input)
			var got []unix.Errno
			if err := json.Unmarshal([]byte(output(t, cmd)), &got); err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%d answers to %d calls", len(got), len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("%s%#x: %v, want %v", denied[i].Call, denied[i].Args, got[i], want[i])
				}
			}
		})
	}
}

// Calls that the filter lets through must reach the kernel, which has its own
// answers to these arguments.
func TestKernelStillAnswersTheRest(t *testing.T) {
	t.Parallel()
	want := []unix.Errno{unix.EBADF, unix.EBADF, unix.ESRCH, unix.EFAULT, unix.ENOSYS, unix.EINVAL, 0}
	input, err := json.Marshal([]rawCall{
		{unix.SYS_IOCTL, [6]uint64{bad, unix.TIOCGWINSZ}},
		{unix.SYS_FCHMOD, [6]uint64{bad, 0o755}},
		{unix.SYS_PTRACE, [6]uint64{unix.PTRACE_ATTACH, 1 << 30}},
		{unix.SYS_OPENAT, [6]uint64{bad, 0, 0, 0o4755}},
		{1<<32 - 1, [6]uint64{}}, // what a tracer writes to skip a call
		{unix.SYS_SECCOMP, [6]uint64{bad}},
		{unix.SYS_UNSHARE, [6]uint64{unix.CLONE_FS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := under(t, "calls")
	cmd.Stdin = bytes.NewReader(input)
	var got []unix.Errno
	if err := json.Unmarshal([]byte(output(t, cmd)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}

// killed returns the signal that killed cmd; 0 when it exited.
func killed(t *testing.T, cmd *exec.Cmd) syscall.Signal {
	t.Helper()
	var exit *exec.ExitError
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		t.Fatal(err)
	case !exit.Sys().(syscall.WaitStatus).Signaled():
		t.Fatalf("%v\n%s", err, out)
	}
	return exit.Sys().(syscall.WaitStatus).Signal()
}

// faults reports whether a child met a general protection fault in code that is not
// Go's: the runtime reports SIGSEGV and exits.
func faults(out []byte, err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 2 && bytes.Contains(out, []byte("SIGSEGV"))
}

// A kernel without the 32-bit entry answers int 0x80 as any kernel answers hlt.
func TestMissingEntryIsTold(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("one way into the kernel")
	}
	if out, err := under(t, "fault-free").CombinedOutput(); !faults(out, err) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := under(t, "x32-free").CombinedOutput(); faults(out, err) || err != nil {
		t.Errorf("a call that comes back: %v\n%s", err, out)
	}
}

func TestForeignCallsAreKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 code can make calls of another ABI by itself")
	}
	for _, mode := range []string{"foreign", "x32"} {
		for _, variant := range []string{"", "-nested"} {
			t.Run(mode+variant, func(t *testing.T) {
				t.Parallel()
				if out, err := under(t, mode+"-free").CombinedOutput(); faults(out, err) {
					t.Skip("this kernel has no 32-bit entry (CONFIG_IA32_EMULATION)")
				} else if err != nil {
					t.Fatalf("without a filter: %v\n%s", err, out)
				}
				if signal := killed(t, under(t, mode+variant)); signal != unix.SIGSYS {
					t.Errorf("ended by signal %d, want SIGSYS", signal)
				}
			})
		}
	}
}

func TestNestedAllowsUserNamespaces(t *testing.T) {
	t.Parallel()
	need(t, "unshare")
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{path, "--user", "--map-root-user", "--mount", "--uts", "sh", "-c", "hostname inner && mount -t tmpfs none /mnt && hostname"}
	if out, err := under(t, "exec-free", args...).CombinedOutput(); err != nil {
		t.Skipf("user namespaces do not work here at all: %v: %s", err, out)
	}
	if got := output(t, under(t, "exec-nested", args...)); got != "inner\n" {
		t.Errorf("inside the inner namespace: %q", got)
	}
	if out, err := under(t, "exec", args...).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("Operation not permitted")) {
		t.Errorf("without the option: %v, %s", err, out)
	}
}

func TestInstallIsUnderNoNewPrivileges(t *testing.T) {
	t.Parallel()
	got := output(t, under(t, "exec", "/bin/sh", "-c", "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status"))
	if diff := cmp.Diff("NoNewPrivs:\t1\nSeccomp:\t2\n", got); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}

func TestInstallNotify(t *testing.T) {
	t.Parallel()
	if got := output(t, under(t, "notify")); got != "asked: 2 more: 0\n" {
		t.Errorf("got %q", got)
	}
}

func TestOrdinaryWorkGoesOn(t *testing.T) {
	t.Parallel()
	for _, work := range []struct{ name, program, script string }{
		{"shell", "sh", `for i in 1 2 3; do (echo $i | cat) & done; wait; mkfifo p; (echo x >p) & read y <p; test $y = x; chmod 1777 .; ln -s p q; mv q r; cp -a r s`},
		{"git", "git", `git init -q a; cd a; echo 1 >f; git add f; git commit -qm one; git mv f g; git commit -qm two; git gc -q; git clone -q . ../b; cd ../b; git worktree add -q ../c; git stash list; test "$(git rev-list --count HEAD)" = 2`},
		{"python", "python3", `python3 -c '
import threading, subprocess, select, socket, os, multiprocessing, tempfile
t = [threading.Thread(target=lambda: subprocess.run(["true"], check=True)) for _ in range(5)]
[x.start() for x in t]; [x.join() for x in t]
a, b = socket.socketpair(); e = select.epoll(); e.register(b, select.EPOLLIN); a.send(b"x"); assert e.poll(10)
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); c.close()
p = multiprocessing.get_context("spawn").Process(target=print); p.start(); p.join(); assert p.exitcode == 0
tempfile.TemporaryFile().close(); os.memfd_create("m")
'`},
		{"node", "node", `node -e '
const cp = require("child_process"), fs = require("fs"), net = require("net"), { Worker } = require("worker_threads")
cp.execFileSync("true"); fs.mkdtempSync("x"); new Worker("1", { eval: true })
const s = net.createServer(c => { c.end(); s.close() }).listen(0, "127.0.0.1", () => net.connect(s.address().port, "127.0.0.1").resume())
'`},
		{"compiler", "gcc", `printf '#include <pthread.h>\nvoid *f(void *x){return x;}int main(){pthread_t t;return pthread_create(&t,0,f,0)||pthread_join(t,0);}' >t.c; gcc -pthread t.c -o t; ./t`},
		{"debugger", "strace", `strace -f -o log sh -c 'true; exit 0'; grep -q execve log; strace -o log -e inject=getppid:retval=77 sh -c 'echo $PPID' | grep -qx 77`},
	} {
		t.Run(work.name, func(t *testing.T) {
			t.Parallel()
			need(t, work.program)
			script := "set -e\n" + work.script
			if out, err := under(t, "exec-free", "/bin/sh", "-c", script).CombinedOutput(); err != nil {
				t.Skipf("does not work without the filter either: %v\n%s", err, out)
			}
			output(t, under(t, "exec", "/bin/sh", "-c", script))
		})
	}
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		output(t, under(t, "go"))
	})
}

// The cost of the rule on set-ID bits, as its comment in rules.go says.
func TestSetIDBits(t *testing.T) {
	t.Parallel()
	need(t, "tar")
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "dir/", Mode: 0o2755},
		{Typeflag: tar.TypeReg, Name: "dir/program", Mode: 0o4755},
		{Typeflag: tar.TypeReg, Name: "dir/z", Mode: 0o644},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	extract := func(t *testing.T, mode, flag string) (string, error) {
		cmd := under(t, mode, "/bin/sh", "-c", "tar --no-same-owner "+flag+" -xf - && ls -ld dir/program dir/z >&2")
		cmd.Stdin = bytes.NewReader(archive.Bytes())
		_, err := cmd.CombinedOutput()
		if _, missing := os.Stat(filepath.Join(cmd.Dir, "dir/z")); missing != nil {
			t.Error(missing)
		}
		info, missing := os.Stat(filepath.Join(cmd.Dir, "dir/program"))
		if missing != nil {
			t.Fatal(missing)
		}
		return info.Mode().String(), err
	}
	if mode, err := extract(t, "exec-free", "-p"); err != nil || mode != "urwxr-xr-x" {
		t.Errorf("without the filter: %s, %v", mode, err)
	}
	if mode, err := extract(t, "exec", "--no-same-permissions"); err != nil || mode != "-rwxr-xr-x" {
		t.Errorf("tar as an ordinary user calls it: %s, %v", mode, err)
	}
	if mode, err := extract(t, "exec", "-p"); err == nil || strings.Contains(mode, "u") {
		t.Errorf("tar -p: %s, %v", mode, err)
	}
}
