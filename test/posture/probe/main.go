// Command probe prints what a process has, as JSON: ids, capabilities,
// namespaces, mounts, descriptors, limits, environment. It judges nothing; the
// posture test runs it inside and outside a sandbox, and compares.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Report is what the probe saw, all in the kernel's words.
type Report struct {
	Status      map[string]string // chosen fields of /proc/self/status
	Namespaces  map[string]string
	UIDMap      string
	GIDMap      string
	SetGroups   string
	Mounts      []string // mount point, options, type, options of the file system
	Descriptors map[string]string
	PID1        map[string]string // what /proc/1 lets us see
	Limits      map[string]string
	PID1Limits  map[string]string
	UserLimits  map[string]string // of the user namespace
	Env         []string
	Root        []string // entries of /
	Devices     []string
	Interfaces  []string
	Processes   []string // command names
	Cgroup      string
	Directory   string
	Hostname    string
}

func main() {
	report, err := look()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func look() (Report, error) {
	r := Report{
		Status: map[string]string{}, Namespaces: map[string]string{}, Descriptors: map[string]string{},
		PID1: map[string]string{}, UserLimits: map[string]string{}, Env: os.Environ(),
		Limits: limits("/proc/self/limits"), PID1Limits: limits("/proc/1/limits"),
		UIDMap: text("/proc/self/uid_map"), GIDMap: text("/proc/self/gid_map"), SetGroups: text("/proc/self/setgroups"),
		Cgroup: text("/proc/self/cgroup"), Root: names("/"), Devices: names("/dev"),
	}
	for _, line := range strings.Split(text("/proc/self/status"), "\n") {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Umask", "TracerPid":
			r.Status[key] = strings.Join(strings.Fields(value), " ")
		}
	}
	links("/proc/self/ns", r.Namespaces)
	// The directory being read is open too, and has the next free number.
	links("/proc/self/fd", r.Descriptors)
	for _, line := range strings.Split(text("/proc/self/mountinfo"), "\n") {
		// proc_pid_mountinfo(5): the fields up to " - " and those after it.
		before, after, _ := strings.Cut(line, " - ")
		fields, file := strings.Fields(before), strings.Fields(after)
		if len(fields) >= 6 && len(file) >= 3 {
			r.Mounts = append(r.Mounts, strings.Join([]string{fields[4], fields[5], file[0], file[2]}, " "))
		}
	}
	for _, name := range []string{"fd", "root", "cwd", "exe", "environ", "maps"} {
		path := filepath.Join("/proc/1", name)
		_, err := os.ReadFile(path)
		if name == "fd" {
			_, err = os.ReadDir(path)
		} else if name == "root" || name == "cwd" || name == "exe" {
			_, err = os.Readlink(path)
		}
		r.PID1[name] = "visible"
		if os.IsPermission(err) {
			r.PID1[name] = "denied"
		}
	}
	for _, line := range strings.Split(text("/proc/1/status"), "\n") {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters":
			r.PID1[key] = strings.Join(strings.Fields(value), " ")
		}
	}
	for _, name := range names("/proc/sys/user") {
		r.UserLimits[name] = text("/proc/sys/user/" + name)
	}
	for _, line := range strings.Split(text("/proc/net/dev"), "\n") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			r.Interfaces = append(r.Interfaces, strings.TrimSpace(name))
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/comm")
	for _, comm := range processes {
		r.Processes = append(r.Processes, text(comm))
	}
	if err == nil {
		r.Directory, err = os.Getwd()
	}
	if err == nil {
		r.Hostname, err = os.Hostname()
	}
	return r, err
}

// text returns a file without its last newline; empty if it cannot be read,
// which the comparison then shows.
func text(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func names(dir string) []string {
	var found []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []string{err.Error()}
	}
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func links(dir string, into map[string]string) {
	for _, name := range names(dir) {
		if to, err := os.Readlink(filepath.Join(dir, name)); err == nil {
			into[name] = to
		}
	}
}

// limits returns those of a process, as proc_pid_limits(5) shows them.
func limits(path string) map[string]string {
	found := map[string]string{}
	for _, line := range strings.Split(text(path), "\n")[1:] {
		if len(line) > 26 {
			found[strings.TrimSpace(line[:26])] = strings.Join(strings.Fields(line[26:]), " ")
		}
	}
	return found
}
