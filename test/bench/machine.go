package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// fact is one line about the machine on a page.
type fact struct{ what, value string }

// machine describes the machine measured on. It names no path and no host.
func (b *bench) machine() []fact {
	facts := []fact{
		{"date", time.Now().UTC().Format("2006-01-02")},
		{"processor", fmt.Sprintf("%s, %d cores", firstOf(field("/proc/cpuinfo", "model name"), runtime.GOARCH), runtime.NumCPU())},
	}
	if kib, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		facts = append(facts, fact{"memory", fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))})
	}
	who := "an ordinary user"
	if os.Geteuid() == 0 {
		who = "root"
	}
	load, _, _ := strings.Cut(contents("/proc/loadavg"), " ")
	facts = append(facts,
		fact{"kernel", firstOf(strings.TrimSpace(contents("/proc/sys/kernel/osrelease")), runtime.GOOS)},
		fact{"system", firstOf(osName(), "unknown")},
		fact{"file system", firstOf(fileSystem(b.dir), "unknown")},
		fact{"run by", who},
		fact{"load when it began", firstOf(load, "unknown")},
	)
	for _, program := range []struct {
		name string
		argv []string
	}{
		{"litterbox", []string{b.litterbox, "version"}},
		{"git", []string{"git", "version"}},
		{"Go", []string{"go", "version"}},
		{"bwrap", []string{"bwrap", "--version"}},
		{"crun", []string{"crun", "--version"}},
		{"docker", []string{"docker", "version", "--format", "client {{.Client.Version}}, server {{.Server.Version}}"}},
		{"npm", []string{"npm", "--version"}},
		{"node", []string{"node", "--version"}},
		{"slirp4netns", []string{"slirp4netns", "--version"}},
		{"pasta", []string{"pasta", "--version"}},
	} {
		facts = append(facts, fact{program.name, version(program.argv)})
	}
	return facts
}

// version returns the first line of a program's version output.
func version(argv []string) string {
	if _, err := exec.LookPath(argv[0]); err != nil {
		return "not installed"
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	output, err := cmd.Output()
	if err != nil {
		return "does not answer"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	for _, word := range []string{argv[0] + " ", "litterbox ", "version "} {
		line = strings.TrimPrefix(line, word)
	}
	return line
}

func osName() string {
	name := strings.TrimPrefix(lineWith("/etc/os-release", "PRETTY_NAME="), "PRETTY_NAME=")
	return strings.Trim(name, `"`)
}

// field returns the value of the first "name : value" of a file below /proc.
func field(path, name string) string {
	_, value, _ := strings.Cut(lineWith(path, name), ":")
	return strings.TrimSpace(value)
}

func lineWith(path, prefix string) string {
	for line := range strings.Lines(contents(path)) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func contents(path string) string {
	data, _ := os.ReadFile(path) // not there on every system
	return string(data)
}

// fileSystem returns the type of the one that holds a directory: the last
// mount of the longest mount point above it, see proc_pid_mountinfo(5).
func fileSystem(dir string) string {
	longest, kind := "", ""
	for line := range strings.Lines(contents("/proc/self/mountinfo")) {
		before, after, found := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(rest) == 0 {
			continue
		}
		point := fields[4]
		inside := point == "/" || dir == point || strings.HasPrefix(dir, point+"/")
		if inside && len(point) >= len(longest) {
			longest, kind = point, rest[0]
		}
	}
	return kind
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
