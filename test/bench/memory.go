package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// idleAfter is when a sandbox has given back what its last command needed.
const idleAfter = 5 * time.Second

// memory prints the proportional set size of this run's sandboxes, keepers and
// guests, while they wait.
func (b *bench) memory(size string) error {
	time.Sleep(idleAfter)
	leases, err := filepath.Glob(filepath.Join(b.dir, "state", "litterbox", "sandboxes", "*", "lease.json"))
	if err != nil {
		return err
	}
	total := 0
	for _, path := range leases {
		pids, err := processes(path)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			kib, err := proportional(pid)
			if err != nil {
				return err
			}
			total += kib
		}
	}
	fmt.Printf("| memory of an idle sandbox (keeper and guest, PSS, mean of %d), %s | %.1f MB | – | |\n",
		len(leases), size, float64(total)/1024/float64(len(leases)))
	return nil
}

// processes reads who keeps a sandbox and who lives in it from its lease.
func processes(path string) ([]int, error) {
	type process struct {
		PID int `json:"pid"`
	}
	var lease struct {
		State  string `json:"state"`
		Holder string `json:"holder"`
		Handle []byte `json:"handle"`
	}
	var keeper process
	var handle struct {
		Guest process `json:"guest"`
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &lease)
	}
	if err != nil || lease.State != "active" {
		return nil, err
	}
	if err = json.Unmarshal([]byte(lease.Holder), &keeper); err == nil {
		err = json.Unmarshal(lease.Handle, &handle)
	}
	return []int{keeper.PID, handle.Guest.PID}, err
}

// proportional is the Pss line of proc_pid_smaps_rollup(5), in KiB.
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
