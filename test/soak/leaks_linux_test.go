package soak_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// Tolerances for what comes and goes by itself.
const (
	moreDescriptors = 8
	moreMemory      = 24 << 20 // bytes of resident memory
	leftDisk        = 64 << 20 // bytes: the audit log may stay
)

// weight is what the keeper and the guest of a sandbox hold. Processes of
// another machine are not visible here.
type weight struct{ descriptors, memory map[string]int }

func weigh(h *program.Host, name string, here bool) weight {
	h.Helper()
	keeper, guest := h.MustProcesses(name)
	w := weight{map[string]int{}, map[string]int{}}
	processes := map[string]int{"keeper": keeper, "guest": guest}
	if !here {
		delete(processes, "guest")
	}
	for who, pid := range processes {
		if entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil { // the guest of another user's id has none for us
			w.descriptors[who] = len(entries)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			h.Errorf("the %s of %s: %v", who, name, err)
			continue
		}
		for line := range strings.Lines(string(status)) {
			if kib, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")))
				if err != nil {
					h.Error(err)
				}
				w.memory[who] = n << 10
			}
		}
	}
	if len(w.memory) != len(processes) {
		h.Errorf("weighed only %v", w)
	}
	return w
}

// compare fails the test if the sandbox holds more than before.
func (w weight) compare(t *testing.T, before weight) {
	t.Helper()
	t.Logf("held at the beginning %v, at the end %v", before, w)
	for who, n := range w.descriptors {
		if n > before.descriptors[who]+moreDescriptors {
			t.Errorf("the %s has %d descriptors, had %d", who, n, before.descriptors[who])
		}
	}
	for who, n := range w.memory {
		if n > before.memory[who]+moreMemory {
			t.Errorf("the %s takes %d MiB, took %d MiB", who, n>>20, before.memory[who]>>20)
		}
	}
}

// ownPrefix begins the names of our sandboxes, and of no others: their control
// groups are beside those of other users' sandboxes on this machine.
var ownPrefix = fmt.Sprintf("soak-%d-", os.Getpid())

// census returns what the sandboxes of this host have on the machine, by kind.
func census(h *program.Host) map[string][]string {
	h.Helper()
	found := map[string][]string{"process": {}, "mount": {}, "cgroup": {}}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		h.Fatal(err)
	}
	for _, dir := range processes {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ")) // it may be over
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		descriptors, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
		of := strings.Contains(string(environ), h.State) || strings.HasPrefix(cwd, h.State)
		for _, descriptor := range descriptors {
			target, _ := os.Readlink(descriptor)
			of = of || strings.HasPrefix(target, h.State)
		}
		if of {
			found["process"] = append(found["process"], filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		h.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, h.Dir) {
			found["mount"] = append(found["mount"], line)
		}
	}
	for _, hierarchy := range cgroup.Find() { // where a sandbox's group can be
		groups, err := filepath.Glob(filepath.Join(hierarchy.Parent, "litterbox-"+ownPrefix+"*"))
		if err != nil {
			h.Fatal(err)
		}
		found["cgroup"] = append(found["cgroup"], groups...)
	}
	for kind, pattern := range map[string]string{
		"sandbox": "sandboxes/*", "golden": "golden/*", "environment": "environments/sandboxes/*", "frozen layer": "frozen/*-*",
	} {
		if found[kind], err = filepath.Glob(filepath.Join(h.State, "litterbox", pattern)); err != nil {
			h.Fatal(err)
		}
	}
	accounts, err := os.ReadFile("/etc/passwd") // those of environments of root
	if err != nil {
		h.Fatal(err)
	}
	for line := range strings.Lines(string(accounts)) {
		if strings.HasPrefix(line, ownPrefix) {
			found["account"] = append(found["account"], line)
		}
	}
	return found
}

// awaitCensus fails the test unless everything is as before in a while: a
// process that was killed takes its time to end.
func awaitCensus(t *testing.T, h *program.Host, before map[string][]string) {
	t.Helper()
	var left map[string][]string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		left = census(h)
		for kind, all := range left {
			left[kind] = slices.DeleteFunc(all, func(one string) bool { return slices.Contains(before[kind], one) })
		}
		maps.DeleteFunc(left, func(_ string, all []string) bool { return len(all) == 0 })
		if len(left) == 0 {
			break
		}
	}
	for kind, all := range left {
		t.Errorf("left behind, %s: %q", kind, all)
	}
	size, parts := int64(0), map[string]int64{}
	_ = filepath.WalkDir(h.State, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				below, _ := filepath.Rel(h.State, path) // it is below
				name := part(below)
				parts[name] += info.Size()
				// Layers stay until litterbox prune, and then for a while.
				if cached, _ := filepath.Match("litterbox/repos/*/cache", name); !cached {
					size += info.Size()
				}
			}
		}
		return nil
	})
	t.Logf("the state takes %d bytes at the end without its cache: %v", size, parts)
	if size > leftDisk {
		t.Errorf("the state takes %d MiB without its cache, though no sandbox is left", size>>20)
	}
}

// part returns the part of the state that a file belongs to.
func part(path string) string {
	names := strings.Split(path, string(filepath.Separator))
	return strings.Join(names[:min(len(names)-1, 4)], "/")
}
