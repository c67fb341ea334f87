// Package lifecycle_test shows what becomes of a running sandbox when its
// keepers die, hang, or find another time than they left.
package lifecycle_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// box is one sandbox and what it has recorded of its place.
type box struct {
	*program.Host
	name string
}

func create(h *program.Host, name string) box {
	h.Helper()
	h.Must("create", name)
	return box{h, name}
}

func (b box) dir() string {
	b.Helper()
	found, err := filepath.Glob(filepath.Join(b.State, "litterbox/sandboxes", b.name+"-????????"))
	if err != nil || len(found) != 1 {
		b.Fatalf("the directory of %s: %q, %v", b.name, found, err)
	}
	return found[0]
}

type lease struct {
	Handle []byte `json:"handle"`
	State  string `json:"state"`
	Holder string `json:"holder"`
}

// keeper is the process that keeps the sandbox.
func (b box) keeper() int {
	b.Helper()
	keeper, _ := b.MustProcesses(b.name)
	return keeper
}

func (b box) lease() lease {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir(), "lease.json"))
	if err != nil {
		b.Fatal(err)
	}
	var read lease
	if err := json.Unmarshal(data, &read); err != nil {
		b.Fatal(err)
	}
	return read
}

func (b box) signal(pid int, signal syscall.Signal) {
	b.Helper()
	// A keeper whose guest was killed a moment ago may have ended by itself.
	if err := syscall.Kill(pid, signal); err != nil && !(signal == syscall.SIGKILL && err == syscall.ESRCH) {
		b.Fatalf("kill -%d %d: %v", signal, pid, err)
	}
}

// gone reports whether a process has ended, even if it is not reaped yet.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ") || strings.Contains(string(stat), ") X ")
}

// jump changes what the lease says of its time. Its keeper must not write it at
// the same moment: it does so every half minute.
func (b box) jump(pattern string) {
	b.Helper()
	if got := b.Shell(`sed -i '` + pattern + `; s/"checksum": .*/"checksum": ""/' ` + filepath.Join(b.dir(), "lease.json")); got.Code != 0 {
		b.Fatalf("%+v", got)
	}
}

// keepers counts the processes that hold the sandbox's lock as keepers do, for
// as long as they live.
func (b box) keepers() (pids []int) {
	b.Helper()
	lock := filepath.Join(b.dir(), "locks")
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range all {
		argv, _ := os.ReadFile(path) // it may be over
		if !strings.HasSuffix(string(argv), "\x00keeper\x00") {
			continue
		}
		descriptors, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "fd", "*"))
		for _, descriptor := range descriptors {
			if target, _ := os.Readlink(descriptor); target == lock {
				pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				if err != nil {
					b.Fatal(err)
				}
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// await fails the test if true does not hold in a long time.
func (b box) await(what string, true func() bool) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("it never came true that %s", what)
		}
	}
}

// Many commands find the keeper dead, and one keeper follows it.
func TestOneKeeperFollows(t *testing.T) {
	t.Parallel()
	b := create(built.New(t), "box")
	b.Must("exec", "box", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! >pid")
	for range 3 {
		b.signal(b.keeper(), syscall.SIGKILL)
		var running sync.WaitGroup
		for i := range 6 {
			running.Go(func() {
				if got := b.Inside("box", "sh", "-c", "kill -0 $(cat pid)"); got.Code != 0 {
					b.Errorf("command %d: %+v", i, got)
				}
			})
		}
		running.Wait()
		// One that came too late, if any, would be on its way out.
		b.await("there is one keeper, which is recorded", func() bool {
			pids := b.keepers()
			return len(pids) == 1 && pids[0] == b.keeper()
		})
	}
}

// A keeper that hangs and has not renewed its lease is ended, but nothing that
// it kept; a changed clock ends none.
func TestHungKeeperIsReplaced(t *testing.T) {
	t.Parallel()
	b := create(built.New(t), "box")
	b.Must("exec", "box", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! >pid")
	hung := b.keeper()

	// As long as it answers, no clock makes it expire.
	b.jump(`s/"\(expires_at\|heartbeat\)": "20/"\1": "19/`)
	b.Must("exec", "box", "--", "true")
	b.jump(`s/"\(expires_at\|heartbeat\)": "19/"\1": "29/`)
	b.Must("exec", "box", "--", "true")
	if now := b.keeper(); now != hung {
		t.Fatalf("keeper %d was replaced by %d because of the clock", hung, now)
	}
	if metrics := b.Must("metrics"); !strings.Contains(metrics, "litterbox_sandbox_heartbeat_age_seconds") || strings.Contains(age(metrics), "e+") {
		t.Errorf("the age of the heartbeat goes by the clock:\n%s", age(metrics))
	}

	b.signal(hung, syscall.SIGSTOP)
	b.jump(`s/"awake_ns": [0-9]*/"awake_ns": 9000000000000000000/`)
	got := b.Inside("box", "sh", "-c", "kill -0 $(cat pid)")
	if got.Code != 0 || !strings.Contains(got.Stderr, "did not answer and was ended") {
		t.Errorf("%+v", got)
	}
	if pids := b.keepers(); len(pids) != 1 || pids[0] == hung {
		t.Errorf("keepers %v; %d hung", pids, hung)
	}
}

// age returns the line with the heartbeat's age.
func age(metrics string) string {
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "litterbox_sandbox_heartbeat_age_seconds{") {
			return line
		}
	}
	return ""
}

// After a reboot nothing that was recorded runs, whatever has those numbers.
func TestRebootIsSeen(t *testing.T) {
	t.Parallel()
	b := create(built.New(t), "box")
	b.Must("exec", "box", "--", "sh", "-c", "echo kept >file")
	keeper, guest := b.MustProcesses(b.name)
	for _, pid := range []int{keeper, guest} {
		b.signal(pid, syscall.SIGKILL)
		b.await("process "+strconv.Itoa(pid)+" is gone", func() bool { return gone(pid) })
	}
	// Other processes have the numbers now: this one.
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	start := strings.Fields(string(self[strings.LastIndexByte(string(self), ')')+1:]))[19]
	data, err := os.ReadFile(filepath.Join(b.dir(), "lease.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	me := json.RawMessage(`{"pid":` + strconv.Itoa(os.Getpid()) + `,"start_time":` + start + `,"boot":"another"}`)
	var handle map[string]any
	if err := json.Unmarshal(b.lease().Handle, &handle); err != nil {
		t.Fatal(err)
	}
	handle["guest"] = me
	raw, err := json.Marshal(handle)
	if err != nil {
		t.Fatal(err)
	}
	record["handle"], record["holder"] = raw, string(me)
	record["beat"].(map[string]any)["boot"] = "another"
	delete(record, "checksum")
	if data, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	b.Put(filepath.Join(b.dir(), "lease.json"), string(data))
	if listed := b.Must("list"); !strings.Contains(listed, "stopped") {
		t.Errorf("after a reboot:\n%s", listed)
	}
	if got := b.Inside("box", "cat", "file"); got.Stdout != "kept\n" || !strings.Contains(got.Stderr, "had stopped running, and was started again") {
		t.Errorf("%+v", got)
	}
}

// A place that dies while paused, or about to be, is lost: every command says
// so in the same way, and the next one starts it again at once.
func TestDeathInAPause(t *testing.T) {
	t.Parallel()
	b := create(built.New(t), "box")
	for round, killed := range [][]string{{"guest"}, {"guest", "keeper"}, {"keeper", "guest"}} {
		b.Must("exec", "box", "--", "sh", "-c", "echo "+strconv.Itoa(round)+" >file")
		b.Must("pause", "box")
		keeper, guest := b.MustProcesses(b.name)
		pids := map[string]int{"guest": guest, "keeper": keeper}
		for _, who := range killed {
			b.signal(pids[who], syscall.SIGKILL)
		}
		if listed := b.Must("list"); strings.Contains(listed, "paused") {
			t.Errorf("%v killed:\n%s", killed, listed)
		}
		for _, verb := range []string{"pause", "resume"} {
			// Conflict: it is not running.
			if got := b.Litterbox(verb, "box"); got.Code != 5 || !strings.Contains(got.Stderr, "litterbox start box") {
				t.Errorf("%v killed, %s: %+v", killed, verb, got)
			}
		}
		if got := b.Inside("box", "cat", "file"); got.Stdout != strconv.Itoa(round)+"\n" || !strings.Contains(got.Stderr, "was started again") {
			t.Errorf("%v killed, then exec: %+v", killed, got)
		}
	}
}

// A paused place that is stopped ends in an orderly way, and is not called lost.
func TestStopOfAPause(t *testing.T) {
	t.Parallel()
	b := create(built.New(t), "box")
	b.Must("pause", "box")
	b.Must("stop", "box")
	if events := b.Must("events"); strings.Contains(events, "lost") || !strings.Contains(events, "stopped") {
		t.Errorf("%s", events)
	}
	if state := b.lease().State; state != "released" {
		t.Errorf("the lease is %q", state)
	}
	b.Must("exec", "box", "--", "true")
}
