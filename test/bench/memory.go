package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// idleAfter is how long a sandbox takes to release what its last command needed.
const idleAfter = 5 * time.Second

const whatMemory = "memory of an idle sandbox (keeper and guest, PSS)"

// memory measures the proportional set size of this run's sandboxes, keepers
// and guests, while they wait, beside one waiting in bwrap.
func (b *bench) memory(where string) error {
	time.Sleep(idleAfter)
	pids, err := b.everyProcess()
	if err != nil || len(pids) == 0 {
		return errors.Join(err, errors.New("no sandbox runs whose memory could be measured"))
	}
	total := 0
	for _, pid := range pids {
		kib, err := proportional(pid)
		if err != nil {
			return err
		}
		total += kib
	}
	sandboxes := len(pids) / 2
	if sandboxes > 1 {
		where = fmt.Sprintf("%s (mean of %d)", where, sandboxes)
	}
	one := row{What: whatMemory, Where: where,
		Here: measure{Value: float64(total) / 1024 / float64(sandboxes), Unit: megabytes}}
	if b.waiting == 0 {
		b.waiting = b.waitingInBwrap()
	}
	if b.waiting > 0 {
		one.Beside, one.There = "bwrap", measure{Value: float64(b.waiting) / 1024, Unit: megabytes}
	}
	b.report.add(one)
	return nil
}

// waitingInBwrap returns the memory of bwrap's two processes while their
// command waits, in KiB; 0 if unknown.
func (b *bench) waitingInBwrap() int {
	for _, other := range b.others {
		if other.name != "bwrap" {
			continue
		}
		argv := other.argv()
		cmd := exec.Command(argv[0], append(argv[1:len(argv)-1:len(argv)-1], "cat")...)
		input, err := cmd.StdinPipe()
		if err != nil || cmd.Start() != nil {
			return 0
		}
		time.Sleep(idleAfter / 5)
		total, _ := proportional(cmd.Process.Pid)
		for _, pid := range children(cmd.Process.Pid) {
			kib, _ := proportional(pid)
			total += kib // without the command in it
		}
		if input.Close() != nil || cmd.Wait() != nil {
			return 0
		}
		return total
	}
	return 0
}

// children returns the processes that a process has started.
func children(pid int) []int {
	var all []int
	for _, text := range strings.Fields(contents(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))) {
		if child, err := strconv.Atoi(text); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// leases returns the records of this run's sandboxes.
func (b *bench) leases() ([]string, error) {
	return filepath.Glob(filepath.Join(b.dir, "state", "litterbox", "sandboxes", "*", "lease.json"))
}

// held names the keeper and the guest of a sandbox.
type held struct {
	active        bool
	keeper, guest process
}

type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start_time"` // in ticks after the machine's
}

func readLease(path string) (held, error) {
	var lease struct {
		State  string `json:"state"`
		Holder string `json:"holder"`
		Handle []byte `json:"handle"`
	}
	var handle struct {
		Guest process `json:"guest"`
	}
	var found held
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &lease)
	}
	if err == nil {
		err = json.Unmarshal([]byte(lease.Holder), &found.keeper)
	}
	if err == nil {
		err = json.Unmarshal(lease.Handle, &handle)
	}
	found.active, found.guest = lease.State == "active", handle.Guest
	return found, err
}

// lives reports whether it is still that process: numbers are reused.
func (p process) lives() bool {
	fields := afterName(p.PID)
	return len(fields) > 19 && fields[19] == strconv.FormatUint(p.Start, 10)
}

// afterName returns proc_pid_stat(5) from its third field on: the name before
// is in parentheses and may hold anything.
func afterName(pid int) []string {
	stat := contents(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
}

// proportional returns the Pss line of proc_pid_smaps_rollup(5), in KiB.
func proportional(pid int) (int, error) {
	rollup, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(rollup)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, fmt.Errorf("no Pss in the memory of process %d", pid)
}
