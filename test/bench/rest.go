package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// watched is how long sandboxes at rest are watched.
const watched = 30 * time.Second

const (
	whatStopped = "processes of a stopped sandbox"
	whatRest    = "processor used at rest, by all of"
	whatWakes   = "wake-ups per second at rest, by all of"
)

// rest creates sandboxes that run and others that are stopped, looks at all of
// them, and watches what they use when they are left alone.
func (b *bench) rest() error {
	running, records := b.running, b.records
	repo := filepath.Join(b.dir, "rest")
	if err := errors.Join(os.Mkdir(repo, 0o755), b.fill(repo, 100)); err != nil {
		return err
	}
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }
	var names []string
	for i := range records {
		names = append(names, fmt.Sprintf("box%d", i))
	}
	looks := []step{
		func(int) error { return litterbox("list") },
		func(int) error { return litterbox("metrics") },
	}
	if err := litterbox("create", names[0]); err != nil {
		return err
	}
	one, err := b.measure(looks...)
	if err != nil {
		return err
	}
	if err := b.memory("one sandbox alone"); err != nil {
		return err
	}
	stopped := max(0, records-running)
	err = inPairs(names[1:], func(i int, name string) error {
		err := litterbox("create", name)
		if err == nil && i < stopped {
			err = litterbox("stop", name)
		}
		return err
	})
	if err != nil {
		return err
	}
	several := *b
	several.rounds = min(b.rounds, 5)
	timings, err := several.measure(looks...)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("%d sandboxes of which %d run", records, records-stopped)
	b.timed("`list`", where, timings[0], "of one", one[0])
	b.timed("`metrics`", where, timings[1], "of one", one[1])
	where = fmt.Sprintf("%d sandboxes", records-stopped)
	if err := b.memory(where); err != nil {
		return err
	}
	if err := b.watch(where); err != nil {
		return err
	}
	if stopped > 0 {
		left, err := b.left(stopped)
		if err != nil {
			return err
		}
		b.alone(whatStopped, "", float64(left), plain)
	}
	const atATime = 100
	for len(names) > 0 {
		some := names[:min(atATime, len(names))]
		names = names[len(some):]
		if err := litterbox(append([]string{"delete", "--force"}, some...)...); err != nil {
			return err
		}
	}
	return nil
}

// inPairs calls do for every name, as many at once as keep a small machine
// busy. It stops at the first error.
func inPairs(names []string, do func(int, string) error) error {
	next := make(chan int)
	failed := make([]error, 4)
	var wait sync.WaitGroup
	for worker := range failed {
		wait.Go(func() {
			for i := range next {
				if failed[worker] == nil {
					failed[worker] = do(i, names[i])
				}
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	wait.Wait()
	return errors.Join(failed...)
}

// watch measures how much of a processor sandboxes at rest use, and how often
// one of their threads wakes.
func (b *bench) watch(where string) error {
	pids, err := b.everyProcess()
	if err != nil {
		return err
	}
	ticks, wakes, err := used(pids)
	if err != nil {
		return err
	}
	start := time.Now()
	time.Sleep(watched)
	ticksAfter, wakesAfter, err := used(pids)
	if err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	const perSecond = 100 // USER_HZ, the same on every Linux of today; see proc_pid_stat(5)
	b.alone(whatRest, where, float64(ticksAfter-ticks)/perSecond/took*100, percent)
	b.alone(whatWakes, where, float64(wakesAfter-wakes)/took, plain)
	return nil
}

// everyProcess returns the keeper and the guest of each running sandbox.
func (b *bench) everyProcess() ([]int, error) {
	leases, err := b.leases()
	var all []int
	for _, path := range leases {
		held, failed := readLease(path)
		if err = errors.Join(err, failed); err == nil && held.active {
			all = append(all, held.keeper.PID, held.guest.PID)
		}
	}
	return all, err
}

// used sums up the processor time of processes, in ticks, and the wake-ups of
// their threads.
func used(pids []int) (ticks, wakes int, err error) {
	for _, pid := range pids {
		fields := afterName(pid)
		if len(fields) < 13 {
			return 0, 0, fmt.Errorf("process %d of a sandbox is gone", pid)
		}
		for _, text := range fields[11:13] { // utime and stime
			count, err := strconv.Atoi(text)
			if err != nil {
				return 0, 0, err
			}
			ticks += count
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, path := range threads {
			if count, err := strconv.Atoi(field(path, "voluntary_ctxt_switches")); err == nil {
				wakes += count // a thread that is gone meanwhile does not count
			}
		}
	}
	return ticks, wakes, nil
}

// left counts the processes that sandboxes still have after they were stopped.
func (b *bench) left(stopped int) (int, error) {
	leases, err := b.leases()
	if err != nil {
		return 0, err
	}
	count, seen := 0, 0
	for _, path := range leases {
		held, err := readLease(path)
		if err != nil {
			return 0, err
		}
		if held.active {
			continue
		}
		seen++
		for _, one := range []process{held.keeper, held.guest} {
			if one.lives() {
				count++
			}
		}
	}
	if seen < stopped {
		return 0, fmt.Errorf("%d sandboxes were stopped, and %d say so", stopped, seen)
	}
	return count, nil
}
