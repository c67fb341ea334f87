package process_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// dumping is the variable that tells this program to die with a value in its
// memory, and how.
const dumping = "LITTERBOX_TEST_DUMPING"

// The values, as they appear in the program: not as they are in memory.
const (
	inPages = "a value that is kept in pages of its own"
	onHeap  = "a value that a request has on the heap"
	veil    = 0x80
)

// veiled is a value as it is in memory.
func veiled(value string) []byte {
	all := []byte(value)
	for i := range all {
		all[i] ^= veil
	}
	return all
}

// heaped keeps a value on the heap.
var heaped []byte

// dies ends the program in a way that leaves a core dump. The values are put
// together where they are kept: they are nowhere else.
func dies(how string) {
	kept := secret.Keep(make([]byte, len(inPages)))
	heaped = make([]byte, len(onHeap))
	for i := range len(inPages) {
		kept.Bytes()[i] = inPages[i] ^ veil
	}
	for i := range len(onHeap) {
		heaped[i] = onHeap[i] ^ veil
	}
	if how == "kept out" {
		if _, err := process.KeepOutOfDumps(); err != nil {
			panic(err)
		}
	}
	_ = unix.Kill(os.Getpid(), unix.SIGABRT)
	for len(kept.Bytes())+len(heaped) > 0 {
		_ = unix.Pause()
	}
}

// A core dump of a process that has values has none of those that are kept in
// pages of their own; one that keeps out of dumps leaves none.
func TestKeepOutOfDumps(t *testing.T) {
	if how := os.Getenv(dumping); how != "" {
		dies(how)
	}
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || bytes.ContainsAny(pattern, "/|@") {
		t.Skipf("core dumps are not files of the working directory on this machine: %q (%v)", pattern, err)
	}
	dump := func(how string) []byte {
		t.Helper()
		dir := t.TempDir()
		cmd := exec.Command("/bin/sh", "-c", `ulimit -c unlimited && exec "$0" -test.run "^TestKeepOutOfDumps$"`, "/proc/self/exe")
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args[3] = self
		cmd.Dir, cmd.Env = dir, append(os.Environ(), dumping+"="+how, "GOTRACEBACK=crash")
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("it did not die: %s", out)
		}
		if bytes.Contains(out, []byte("ulimit")) {
			t.Skipf("core dumps cannot be allowed here: %s", out)
		}
		found, err := filepath.Glob(filepath.Join(dir, "core*"))
		if err != nil || len(found) == 0 {
			return nil
		}
		content, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	control := dump("as ever")
	if !bytes.Contains(control, veiled(onHeap)) {
		t.Errorf("the control: the value on the heap is not in a dump of %d bytes", len(control))
	}
	if bytes.Contains(control, veiled(inPages)) {
		t.Error("a value in pages of its own is in the dump")
	}
	if found := dump("kept out"); found != nil {
		t.Errorf("a process that keeps out of dumps has left one of %d bytes", len(found))
	}
}
