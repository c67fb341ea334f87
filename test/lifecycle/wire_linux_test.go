package lifecycle_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// cutWires ends every connection of a process to the guest, as a broken link
// would, and returns how many there were.
func cutWires(pid int) (cut int, err error) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pidfd)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, err
	}
	for _, entry := range open {
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			return cut, err
		}
		fd, err := unix.PidfdGetfd(pidfd, number, 0)
		if errors.Is(err, unix.EBADF) {
			continue // closed meanwhile
		}
		if err != nil {
			return cut, err
		}
		peer, err := unix.Getpeername(fd)
		if name, ok := peer.(*unix.SockaddrUnix); err == nil && ok && filepath.Base(name.Name) == "guest.sock" {
			err = unix.Shutdown(fd, unix.SHUT_RDWR)
			cut++
		} else {
			err = nil
		}
		if err := errors.Join(err, unix.Close(fd)); err != nil {
			return cut, err
		}
	}
	return cut, nil
}

// A wire that is cut under a command ends that command. Everything else inside
// goes on, and the same keeper reaches it again.
func TestCutWireEndsNoSandbox(t *testing.T) {
	t.Parallel()
	b := create(built.New(t), "box")
	b.Must("exec", "box", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! >pid")
	keeper, guest := b.MustProcesses("box")
	said := make(chan program.Result, 1)
	go func() {
		said <- b.Litterbox("exec", "box", "--", "sh", "-c", "echo kept >begun; mv begun work; exec sleep 1000")
	}()
	b.await("a command runs", func() bool {
		_, err := os.Stat(filepath.Join(b.dir(), "upper", "work"))
		return err == nil
	})
	cut, err := cutWires(keeper)
	if errors.Is(err, unix.EPERM) {
		b.Must("stop", "box", "--force")
		<-said
		t.Skip("this machine lets no process take another one's descriptors: ", err)
	}
	if err != nil || cut == 0 {
		t.Fatalf("%d wires were cut: %v", cut, err)
	}
	if got := <-said; got.Code != 125 || !strings.Contains(got.Stderr, "the sandbox goes on") {
		t.Errorf("the command that was cut off: %+v", got)
	}
	got := b.Inside("box", "sh", "-c", "kill -0 $(cat pid)")
	if got.Code != 0 {
		t.Errorf("what ran inside is gone: %+v", got)
	}
	if after, same := b.MustProcesses("box"); after != keeper || same != guest {
		t.Errorf("keeper %d and guest %d became %d and %d", keeper, guest, after, same)
	}
	if diff := b.Must("diff", "box"); !strings.Contains(diff, "kept") {
		t.Errorf("what the command wrote is not committed:\n%s", diff)
	}
	if list := b.Must("list"); !strings.Contains(list, "running") {
		t.Errorf("list:\n%s", list)
	}
	if events := b.Must("events"); strings.Contains(events, "sandbox.lost") {
		t.Errorf("it was taken for lost:\n%s", events)
	}
}

// A client that lacks descriptors of its own fails, and leaves alone what it
// cannot reach: with its keeper and without one.
func TestClientWithoutDescriptorsEndsNoSandbox(t *testing.T) {
	t.Parallel()
	b := create(built.New(t), "box")
	keeper, guest := b.MustProcesses("box")
	failed := 0
	for _, without := range []bool{false, true} {
		if without {
			b.signal(keeper, unix.SIGKILL)
		}
		for files := 4; files <= 24; files++ {
			got := b.Shell(fmt.Sprintf("ulimit -n %d; %q exec --no-commit box -- true; %q list", files, b.Program("litterbox"), b.Program("litterbox")))
			if got.Code != 0 {
				failed++
			}
			if strings.Contains(got.Stdout, "stopped") {
				t.Errorf("with %d descriptors it is listed as stopped:\n%s", files, got.Stdout)
			}
			if _, same, err := b.Processes("box"); err == nil && same.PID != guest {
				t.Fatalf("a client with %d descriptors had guest %d replaced by %d: %+v", files, guest, same.PID, got)
			}
		}
	}
	if failed == 0 {
		t.Error("no client lacked anything")
	}
	b.Must("exec", "box", "--", "true")
	if _, same := b.MustProcesses("box"); same != guest {
		t.Errorf("guest %d became %d", guest, same)
	}
}

// A place whose socket is moved away is unreachable, and says since when. It is
// neither merged nor started a second time, and goes on when it is back.
func TestUnreachableIsNoDeath(t *testing.T) {
	t.Parallel()
	b := create(built.New(t), "box")
	keeper, guest := b.MustProcesses("box")
	b.signal(keeper, unix.SIGKILL)
	socket := filepath.Join(b.dir(), "guest.sock")
	if err := os.Rename(socket, socket+".away"); err != nil {
		t.Fatal(err)
	}
	if list := b.Must("list", "--json"); !strings.Contains(list, `"state": "unreachable"`) || !strings.Contains(list, `"unreachable_since": "20`) {
		t.Errorf("list:\n%s", list)
	}
	if status := b.Must("status", "box"); !strings.Contains(status, "unreachable") || !strings.Contains(status, "has not answered since") {
		t.Errorf("status:\n%s", status)
	}
	for _, args := range [][]string{{"exec", "box", "--", "true"}, {"merge", "box", "--yes"}} {
		if got := b.Litterbox(args...); got.Code == 0 || !strings.Contains(got.Stderr, "has not answered since") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if err := os.Rename(socket+".away", socket); err != nil {
		t.Fatal(err)
	}
	b.Must("exec", "box", "--", "true")
	if _, same := b.MustProcesses("box"); same != guest {
		t.Errorf("guest %d became %d", guest, same)
	}
}
