package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ends makes a command end with us.
func ends(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// family lists a process and its descendants, from the kernel's list of each
// one's children (proc(5), since Linux 3.5).
func family(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		lists, _ := filepath.Glob("/proc/" + strconv.Itoa(all[i]) + "/task/*/children") // a bad pattern
		for _, list := range lists {
			text, _ := os.ReadFile(list) // it may have ended
			for _, field := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(field); err == nil {
					all = append(all, child)
				}
			}
		}
	}
	return all
}

// memory adds up the processes' own memory: the machine can take back pages of files.
func memory(all []int) (bytes int64) {
	for _, pid := range all {
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			if fields := strings.Fields(value); (name == "RssAnon" || name == "VmSwap") && len(fields) == 2 {
				kib, _ := strconv.ParseInt(fields[0], 10, 64)
				bytes += kib << 10
			}
		}
	}
	return bytes
}

// shares returns memory where a page that several processes share, as after a
// fork, counts once (proc_pid_smaps(5), smaps_rollup since Linux 4.14, Pss_Anon
// since 5.9). It costs a walk of their page tables.
func shares(all []int) (bytes int64) {
	for _, pid := range all {
		rollup, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
		if err != nil || !strings.Contains(string(rollup), "Pss_Anon:") {
			bytes += memory([]int{pid})
			continue
		}
		for line := range strings.Lines(string(rollup)) {
			name, value, _ := strings.Cut(line, ":")
			if fields := strings.Fields(value); (name == "Pss_Anon" || name == "SwapPss") && len(fields) == 2 {
				kib, _ := strconv.ParseInt(fields[0], 10, 64)
				bytes += kib << 10
			}
		}
	}
	return bytes
}

// end kills the processes, the first one first: it starts the others.
func end(all []int) {
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}

// size returns the space that a directory takes on its file system. A file
// with several names counts once.
func size(dir string) (bytes int64) {
	var device uint64
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is being removed, or closed to us
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if device == 0 {
			device = uint64(stat.Dev)
		}
		if uint64(stat.Dev) != device {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		bytes += stat.Blocks * 512 / max(1, int64(stat.Nlink))
		return nil
	})
	return bytes
}
