package attacks_test

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

//go:embed testdata/flood.py
var floodProgram string

// wells are servers to exhaust a keeper with: one that answers requests, and
// one that talks without end.
func wells(t *testing.T, name string) (quiet, loud *world.Host) {
	t.Helper()
	quiet, loud = outside.Host("quiet."+name+".example"), outside.Host("loud."+name+".example")
	quiet.Serve(t, 80, (&target{}).web)
	loud.Serve(t, 9000, func(conn net.Conn) {
		for data := make([]byte, 64<<10); ; {
			if _, err := conn.Write(data); err != nil {
				return
			}
		}
	})
	return quiet, loud
}

// flood runs the flooding program in box until the returned function is called,
// which waits for its end. It returns when everything is in place.
func flood(t *testing.T, h *program.Host, box string, args ...string) (stop func()) {
	t.Helper()
	ended := make(chan program.Result, 1)
	go func() {
		defer close(ended) // also when it fails the test
		ended <- h.Inside(box, append([]string{"python3", "flood.py"}, args...)...)
	}()
	for h.Inside(box, "test", "-e", "/tmp/ready").Code != 0 {
		select {
		case got := <-ended:
			t.Fatalf("the flood ended early: %d %s", got.Code, got.Stderr)
		case <-time.After(50 * time.Millisecond): // a file appears, and nothing tells
		}
	}
	return func() {
		h.Must("exec", box, "--no-commit", "--", "touch", "/tmp/done")
		if got := <-ended; got.Code != 0 {
			t.Errorf("the flood exited %d: %s", got.Code, got.Stderr)
		}
	}
}

// keeper is the process that carries a sandbox's connections.
type keeper struct {
	t   testing.TB
	pid int
	dir string // of the sandbox
}

func keeperOf(t testing.TB, h *program.Host, box string) keeper {
	t.Helper()
	pid, _ := h.MustProcesses(box)
	found, err := filepath.Glob(filepath.Join(h.State, "litterbox/sandboxes", box+"-????????"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the directories of %s are %q, %v", box, found, err)
	}
	return keeper{t, pid, found[0]}
}

// descriptors counts the keeper's open descriptors.
func (k keeper) descriptors() int {
	k.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", k.pid))
	if err != nil {
		k.t.Fatalf("the keeper is gone: %v", err)
	}
	return len(entries)
}

// peak is the most memory that the keeper ever held, in MiB.
func (k keeper) peak() int {
	k.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", k.pid))
	if err != nil {
		k.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		k.t.Fatal(err)
	}
	return kib >> 10
}

// settle waits until the keeper has given back what the flood took.
func (k keeper) settle(limit int) {
	k.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for k.descriptors() > limit {
		if time.Now().After(deadline) {
			k.t.Errorf("the flood is over, and the keeper keeps %d descriptors, more than %d", k.descriptors(), limit)
			return
		}
		time.Sleep(20 * time.Millisecond) // closing takes its time, and nothing tells
	}
}

func floodHost(t *testing.T) *program.Host {
	t.Helper()
	h := built.New(t)
	h.Put(h.Repo+"/flood.py", floodProgram)
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "a flood")
	return h
}

// Slow, half-open and flooding clients of one sandbox cost the keeper a bounded
// amount of memory and descriptors, which it gives back, and another sandbox
// does not notice them.
func TestFloodsAreBounded(t *testing.T) {
	h := floodHost(t)
	quiet, loud := wells(t, "bounded")
	for _, box := range []string{"flooding", "neighbour"} {
		h.Must("create", box)
		h.Must("allow", box, quiet.Name+":80", loud.Name+":9000", "*.made-up.example")
	}
	k := keeperOf(t, h, "flooding")
	before := k.descriptors()
	const (
		halves = 400
		loads  = 60
	)
	stop := flood(t, h, "flooding",
		fmt.Sprintf("half,%s,80,%d", quiet.Name, halves), fmt.Sprintf("hold,%s,9000,%d", loud.Name, loads),
		"again,198.51.100.250,80,500", "ask,denied.example,53,5000", "ask,made-up.example,53,20000")
	// One descriptor for a head not judged yet, two once it is dialled, two
	// for the pipe once it is spliced.
	if got, most := k.descriptors(), before+halves+5*loads+100; got > most {
		t.Errorf("the keeper holds %d descriptors, more than %d", got, most)
	}
	neighbour := "seq 50 | xargs -P 5 -I{} curl -sS -m 30 http://" + quiet.Name + "/{} | grep -c reached"
	if got := h.Inside("neighbour", "sh", "-c", neighbour); got.Stdout != "50\n" {
		t.Errorf("beside the flood, of 50 requests succeeded %s%s", got.Stdout, got.Stderr)
	}
	stop()
	if peak := k.peak(); peak > 128 {
		t.Errorf("the flood made the keeper hold %d MiB", peak)
	}
	k.settle(before + 20)
	for _, name := range []string{"network.jsonl", "names.json", "keeper.log"} {
		if info, err := os.Stat(filepath.Join(k.dir, name)); err == nil && info.Size() > 2<<20 {
			t.Errorf("%s grew to %d bytes", name, info.Size())
		}
	}
	if got := h.Inside("flooding", "curl", "-sS", "-m", "30", "http://"+quiet.Name+"/"); got.Stdout != "reached\n" {
		t.Errorf("after its flood the sandbox has no network: %s\n%s", got.Stderr, h.Shell("cat "+k.dir+"/keeper.log").Stdout)
	}
	t.Logf("peak of the keeper: %d MiB", k.peak())
}

// A machine that gives a process few descriptors has a keeper that refuses
// connections that it has none for, and works again when some are free.
func TestFewDescriptors(t *testing.T) {
	h := floodHost(t)
	quiet, loud := wells(t, "few")
	// The keeper lives on with the limits of the command that started it.
	const most = 128
	if got := h.Shell(fmt.Sprintf("ulimit -n %d; exec '%s' create box", most, h.Program("litterbox"))); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	h.Must("allow", "box", quiet.Name+":80", loud.Name+":9000")
	k := keeperOf(t, h, "box")
	before := k.descriptors()
	var kinds []string
	for range 3 { // each process inside has few as well
		kinds = append(kinds, fmt.Sprintf("half,%s,80,100", quiet.Name), fmt.Sprintf("hold,%s,9000,100", loud.Name))
	}
	stop := flood(t, h, "box", kinds...)
	if got := k.descriptors(); got > most {
		t.Errorf("the keeper holds %d descriptors of %d", got, most)
	}
	// Commands still reach the sandbox: they cross the same process.
	if got := h.Inside("box", "echo", "here"); got.Stdout != "here\n" {
		t.Errorf("during the flood no command runs: %d %s", got.Code, got.Stderr)
	}
	stop()
	if seen := h.Must("network", "box"); !strings.Contains(seen, "connections open") {
		t.Errorf("nothing was refused for want of descriptors:\n%s", seen)
	}
	k.settle(before + 20)
	// A connection over a stream is not a descriptor: it ends a moment later.
	if got := h.Inside("box", "curl", "-sS", "-m", "30", "--retry", "20", "--retry-delay", "1", "--retry-all-errors", "http://"+quiet.Name+"/"); got.Stdout != "reached\n" {
		t.Errorf("after the flood the network is gone: %s\n%s", got.Stderr, h.Shell("cat "+k.dir+"/keeper.log").Stdout)
	}
}
