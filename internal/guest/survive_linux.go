package guest

import (
	"os"
	"runtime"
	"sync"
)

// The guest shares its sandbox's limits with the programs that reach them, and
// everything inside ends with it. Two things keep it alive next to a bomb.

// spareThreads is how many threads wait for work that may come when no new
// thread can be made: the Go runtime ends a program that cannot get a thread it
// needs (pids, or RLIMIT_NPROC, used up).
const spareThreads = 6

// keepThreads makes threads and lets them wait; the runtime never gives one
// back.
func keepThreads() {
	var all, done sync.WaitGroup
	all.Add(spareThreads)
	for range spareThreads {
		done.Go(func() {
			// A goroutine that is locked to its thread keeps it while it
			// waits, so the next one needs another.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	done.Wait()
}

// victims makes commands likelier victims of the kernel's OOM killer than the
// guest is, and than other programs on the machine (proc_pid_oom_score_adj(5)).
type victims struct {
	file *os.File // nil when it cannot be set; then sizes alone decide
}

// commandScore is half of the highest score: a process that uses half of the
// memory still goes first.
const commandScore = "500"

// openVictims opens our own score, which the guest may no longer do once it is
// hidden from its children.
func openVictims() victims {
	file, err := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0)
	if err != nil {
		return victims{}
	}
	return victims{file}
}

// mark makes the next forked process begin with the score, and unmark restores
// the guest's own.
func (v victims) mark()   { v.write(commandScore) }
func (v victims) unmark() { v.write("0") }

func (v victims) write(score string) {
	if v.file != nil {
		_, _ = v.file.WriteAt([]byte(score), 0) // a little less protection at worst
	}
}
