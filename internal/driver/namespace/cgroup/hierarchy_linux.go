package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The controllers that a sandbox uses, by their names in version 1; blkio is io
// in version 2, and version 2 freezes and counts time without a controller.
const (
	memory  = "memory"
	pids    = "pids"
	cpu     = "cpu"
	cpuacct = "cpuacct"
	blkio   = "blkio"
	freezer = "freezer"
)

// Hierarchy is a tree of groups in which this process may make one.
type Hierarchy struct {
	Version     int      // 1 or 2
	Parent      string   // the directory that takes new groups
	Controllers []string // that work there
}

// Find finds the hierarchies that this process may use. On a machine that
// delegates nothing it finds none, which is not an error.
func Find() []Hierarchy {
	own := groupsOf("thread-self")
	var found []Hierarchy
	var unified *mount
	for _, m := range mounts() {
		if m.version == 2 {
			unified = &m
			continue
		}
		parent := m.parent(own[strings.Join(m.controllers, ",")])
		controllers := slices.DeleteFunc(slices.Clone(m.controllers), func(c string) bool { return !wanted(c) })
		// A thread of ours enters through tasks.
		if len(controllers) > 0 && writable(parent) && writable(filepath.Join(parent, "tasks")) {
			found = append(found, Hierarchy{Version: 1, Parent: parent, Controllers: controllers})
		}
	}
	if unified != nil {
		if h, ok := unified.delegated(own[""]); ok {
			found = append(found, h)
		}
	}
	return found
}

// Of finds the group of that name that contains a process, no matter where it
// was made, also under a spare name.
func Of(pid int, name string) *Group {
	at := groupsOf(strconv.Itoa(pid))
	g := &Group{}
	for _, m := range mounts() {
		p := Part{Version: m.version, Dir: m.parent(at[strings.Join(m.controllers, ",")]), Controllers: m.controllers}
		if m.version == 2 {
			p.Dir, p.Controllers = filepath.Dir(p.Dir), []string{freezer}
		}
		if slices.Contains(spares(name), filepath.Base(p.Dir)) {
			g.Parts = append(g.Parts, p)
		}
	}
	return g
}

func wanted(controller string) bool {
	return slices.Contains([]string{memory, pids, cpu, cpuacct, blkio, freezer}, controller)
}

// groupsOf reads the groups of a process (cgroups(7), /proc/pid/cgroup), by the
// controllers of the hierarchy, which are empty for version 2. For ourselves
// the thread counts: the process is where its first thread is, and that one may
// just be starting a sandbox.
func groupsOf(pid string) map[string]string {
	data, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return map[string]string{}
	}
	return parseGroups(string(data))
}

func parseGroups(text string) map[string]string {
	own := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) == 3 {
			own[fields[1]] = fields[2]
		}
	}
	return own
}

// mount is one mounted hierarchy.
type mount struct {
	version     int
	point       string
	root        string // the group that is mounted: not "/" in a container
	controllers []string
}

// mounts reads proc_pid_mountinfo(5).
func mounts() []mount {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseMounts(string(data))
}

func parseMounts(mountinfo string) []mount {
	var found []mount
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		m := mount{root: unescape(left[3]), point: unescape(left[4])}
		switch right[0] {
		case "cgroup":
			m.version = 1
			for _, option := range strings.Split(right[2], ",") {
				if option != "rw" && option != "ro" && !strings.Contains(option, "=") {
					m.controllers = append(m.controllers, option)
				}
			}
		case "cgroup2":
			m.version = 2
		default:
			continue
		}
		found = append(found, m)
	}
	return found
}

// unescape undoes mountinfo's escapes of blanks in paths.
func unescape(path string) string {
	if !strings.Contains(path, `\`) {
		return path // nearly all of them, and there are many
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// parent is the directory of our own group below the mount; empty when it is
// not there.
func (m mount) parent(own string) string {
	below := own
	if m.root != "/" {
		// Else a namespace of its own: the mount's root is our group's.
		if rest, ok := strings.CutPrefix(own+"/", m.root+"/"); ok {
			below = rest
		}
	}
	// "/.." leads out of our cgroup namespace (cgroup_namespaces(7)); below the
	// mount it would lead to some other directory.
	if slices.Contains(strings.Split(below, "/"), "..") {
		return ""
	}
	return filepath.Join(m.point, below)
}

// delegated finds the nearest ancestor of our own group that may take groups
// beside us: cgroups v2 only let a group without processes of its own, or the
// root, hand controllers on ("no internal processes"), and moving a process
// needs write access to the common ancestor ("Delegation Containment").
func (m mount) delegated(own string) (Hierarchy, bool) {
	best := Hierarchy{Version: 2}
	for dir := m.parent(own); writable(dir) && writable(filepath.Join(dir, "cgroup.procs")); dir = filepath.Dir(dir) {
		h := Hierarchy{Version: 2, Parent: dir, Controllers: handed(dir)}
		if best.Parent == "" || len(h.Controllers) > len(best.Controllers) {
			best = h
		}
		if dir == m.point {
			break
		}
	}
	return best, best.Parent != ""
}

// handed lists the controllers that groups below dir have or can be given, by
// their names in version 1. Freezing and counting time need none.
func handed(dir string) []string {
	names := []string{freezer, cpuacct}
	on := strings.Fields(read(filepath.Join(dir, "cgroup.subtree_control")))
	_, err := os.Stat(filepath.Join(dir, "cgroup.type"))
	free := err != nil || read(filepath.Join(dir, "cgroup.procs")) == "" // the root has no type
	for _, c := range strings.Fields(read(filepath.Join(dir, "cgroup.controllers"))) {
		if name := v1Name(c); name != "" && (free || slices.Contains(on, c)) {
			names = append(names, name)
		}
	}
	return names
}

// handOn gives the controllers to groups below dir. It does so one at a time:
// one that is not available must not hold back the others.
func handOn(dir string, controllers []string) (had []string) {
	control := filepath.Join(dir, "cgroup.subtree_control")
	on := strings.Fields(read(control))
	for _, name := range controllers {
		c := v2Name(name)
		if c == freezer || c == cpuacct || slices.Contains(on, c) || os.WriteFile(control, []byte("+"+c), 0) == nil {
			had = append(had, name)
		}
	}
	return had
}

// v2Name is the name of a controller in version 2.
func v2Name(controller string) string {
	if controller == blkio {
		return "io"
	}
	return controller
}

// v1Name is the version 1 name of a version 2 controller; empty for those that
// a sandbox does not use.
func v1Name(controller string) string {
	switch controller {
	case memory, pids, cpu:
		return controller
	case "io":
		return blkio
	}
	return ""
}

func writable(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil
}

func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
