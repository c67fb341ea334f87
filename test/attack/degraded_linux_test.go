package attack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// outside is what the degraded tier shares the machine with; see the probe.
type outside struct {
	Dir, Keys                          string
	PID                                int
	TCP, UDP, Socket, Abstract, Stream string
	Terminal                           string
	Memory                             int
}

// The degraded tier has no namespace to hide anything, so the test tries
// everything that such a place could do to things outside it. As a control the
// same user does the same outside, and must succeed.
func TestDegradedTier(t *testing.T) {
	w := newWorld(t)
	w.Host = w.With("LITTERBOX_TIER=degraded")
	program.Need(t, "sleep")
	to := w.neighbours()
	created := w.Litterbox("create", box, "--allow-degraded")
	if created.Code != 0 {
		if strings.Contains(created.Stderr, "Landlock") && !slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), "landlock") {
			t.Skip("no Landlock of version 3 on this machine: " + created.Stderr)
		}
		t.Fatal(created.Stderr)
	}
	if !strings.Contains(created.Stderr, "not isolated: ") || !strings.Contains(w.Must("list"), "degraded") {
		t.Errorf("what is not isolated is not said:\n%s%s", created.Stderr, w.Must("list"))
	}
	keys, err := filepath.Glob(filepath.Join(w.State, "litterbox/sandboxes/*/keys.json"))
	if err != nil || len(keys) != 1 {
		t.Fatalf("%q, %v", keys, err)
	}
	to.Keys = keys[0]
	w.Must("cp", w.Program("probe"), box+":probe")
	order, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	inside := w.outcomes(w.Inside(box, "./probe", "shared", string(order)))
	control := w.outcomes(w.probeOutside("shared", string(order)))
	for _, name := range slices.Sorted(maps.Keys(control)) {
		// Yama lets a user's processes trace only their own children, and not
		// every file system has flags.
		mayFail := name == "trace" || name == "flags" && (control[name] == "ENOTTY" || control[name] == "ENOTSUP")
		if control[name] != "ok" && !mayFail {
			t.Errorf("outside %q fails too: %s", name, control[name])
		}
		if name == "signal" && abi() < 6 {
			continue // said by the notes
		}
		if inside[name] == "ok" || inside[name] == "" {
			t.Errorf("inside %q is possible: %q", name, inside[name])
		}
	}
	if got := w.Inside(box, "cat", filepath.Join(w.Repo, "README")); got.Code == 0 {
		t.Errorf("the repository can be read inside: %q", got.Stdout)
	}
}

// What the tier must still be able to do, or no one could work in it.
func TestDegradedTierWorks(t *testing.T) {
	w := newWorld(t)
	w.Host = w.With("LITTERBOX_TIER=degraded")
	if got := w.Litterbox("create", box); got.Code != 0 {
		t.Fatalf("without --allow-degraded and with a full tier to be had: %s", got.Stderr)
	}
	if abi() < 3 {
		t.Skip("no Landlock of version 3 on this machine")
	}
	w.Must("create", "degraded", "--allow-degraded")
	got := w.InsideShell("degraded", `set -e
		test "$HOME" != "" && echo x > "$HOME/note" && echo x > "$TMPDIR/note"
		echo work > made && chmod 755 made && touch -d '2001-02-03 04:05:06' made && test -x made
		ls -l --time-style=+%Y made | grep -q 2001
		mkdir a && mv a b && ln -s made link && touch -h link
		chmod 700 . && (cd b && chmod 750 ../made && chmod 755 .)
		! chmod 755 missing 2>/dev/null
		git add -A && git commit --quiet -m inner && git status --short
		cat /proc/self/status >/dev/null && echo x | cat >/dev/null
		sleep 300 & echo $! > pid && kill $!`)
	if got.Code != 0 {
		t.Fatalf("%s%s", got.Stdout, got.Stderr)
	}
	if files := w.Git("ls-tree", "-r", "degraded"); !strings.Contains(files, "100755 blob") || !strings.Contains(files, "made") {
		t.Errorf("the commit holds\n%s", files)
	}
	if got := w.Inside("degraded", "sh", "-c", "kill -9 $PPID; kill -9 -1; exit 3"); got.Code != 3 {
		t.Errorf("the guest can be ended from inside: %d %s", got.Code, got.Stderr)
	}
	// A process that leaves every group and session is still ended.
	mark := fmt.Sprint(1_000_000 + os.Getpid()) // no other process sleeps as long
	w.Must("exec", "degraded", "--no-commit", "--", "sh", "-c",
		"setsid sh -c 'sleep "+mark+" & : >began; sleep "+mark+"' >/dev/null 2>&1 </dev/null & until test -e began; do sleep 0.01; done")
	running := func() string { return w.Shell("ps -eo args | grep -x 'sleep " + mark + "'").Stdout }
	for deadline := time.Now().Add(time.Minute); running() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what was left in the background does not run")
		}
	}
	w.Must("stop", "degraded")
	if left := running(); left != "" {
		t.Errorf("after a stop there still runs\n%s", left)
	}
	w.Must("exec", "degraded", "--", "cat", "made")
}

// abi is the version of the kernel's Landlock.
func abi() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// neighbours makes everything that the probe tries to reach.
func (w *world) neighbours() outside {
	w.Helper()
	to := outside{Dir: filepath.Join(w.Home, "private"), Abstract: "litterbox-" + w.Secret}
	for _, name := range []string{"secret", "victim", "mode"} {
		w.Put(filepath.Join(to.Dir, name), w.Secret)
	}
	other := exec.Command("sleep", "600")
	w.must(other.Start())
	w.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	to.PID = other.Process.Pid

	short, err := os.MkdirTemp("", "lb-") // a socket's path is short
	w.must(err)
	w.Cleanup(func() { os.RemoveAll(short) })
	to.Socket, to.Stream = filepath.Join(short, "datagram"), filepath.Join(short, "stream")
	for network, address := range map[string]string{"unixgram": to.Socket, "unixgram+": "@" + to.Abstract, "udp": "127.0.0.1:0"} {
		conn, err := net.ListenPacket(strings.TrimSuffix(network, "+"), address)
		w.must(err)
		w.Cleanup(func() { conn.Close() })
		if network == "udp" {
			to.UDP = conn.LocalAddr().String()
		}
	}
	for network, address := range map[string]string{"unix": to.Stream, "tcp": "127.0.0.1:0"} {
		listener, err := net.Listen(network, address)
		w.must(err)
		w.Cleanup(func() { listener.Close() })
		if network == "tcp" {
			to.TCP = listener.Addr().String()
		}
	}
	to.Memory, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	w.must(err)
	w.Cleanup(func() { _, _ = unix.SysvShmCtl(to.Memory, unix.IPC_RMID, nil) })

	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	w.must(err)
	w.Cleanup(func() { master.Close() })
	w.must(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	w.must(err)
	to.Terminal = fmt.Sprintf("/dev/pts/%d", number)
	return to
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
