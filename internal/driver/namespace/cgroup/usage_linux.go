package cgroup

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a group has used; negative values are not counted.
type Usage struct {
	CPU           time.Duration
	Memory        int64 // without file pages not touched lately
	Processes     int
	Threads       int
	Read, Written int64
	OOMKills      int64
	RefusedPIDs   int64
}

// Usage reads the group's counters.
func (g *Group) Usage() Usage {
	u := Usage{CPU: -1, Memory: -1, Processes: -1, Threads: -1, Read: -1, Written: -1, OOMKills: -1, RefusedPIDs: -1}
	if p := g.part(cpuacct); p != nil {
		if p.Version == 2 {
			if n := p.field("cpu.stat", "usage_usec"); n >= 0 {
				u.CPU = time.Duration(n) * time.Microsecond
			}
		} else {
			u.CPU = time.Duration(p.number("cpuacct.usage"))
		}
	}
	if p := g.part(memory); p != nil {
		total, idle := "memory.usage_in_bytes", "total_inactive_file"
		kills, file := "oom_kill", "memory.oom_control"
		if p.Version == 2 {
			total, idle, file = "memory.current", "inactive_file", "memory.events"
		}
		if u.Memory = p.number(total); u.Memory >= 0 {
			u.Memory = max(0, u.Memory-max(0, p.field("memory.stat", idle)))
		}
		u.OOMKills = p.field(file, kills)
	}
	if p := g.part(pids); p != nil {
		u.Threads = int(p.number("pids.current"))
		u.RefusedPIDs = p.field("pids.events", "max")
	}
	if p := g.part(blkio); p != nil {
		u.Read, u.Written = p.io()
	}
	if len(g.Parts) > 0 {
		u.Processes = len(g.Processes())
	}
	return u
}

func (p *Part) number(file string) int64 { return number(read(filepath.Join(p.Dir, file))) }

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// field reads one value of a file with a name and a value on each line.
func (p *Part) field(file, name string) int64 {
	return field(read(filepath.Join(p.Dir, file)), name)
}

func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			return number(value)
		}
	}
	return -1
}

// io adds up the bytes of all devices.
func (p *Part) io() (in, out int64) {
	file := "blkio.throttle.io_service_bytes_recursive"
	if p.Version == 2 {
		file = "io.stat"
	}
	return transferred(read(filepath.Join(p.Dir, file)))
}

// transferred reads the lines of both versions, "8:0 Read 4096" and
// "8:0 rbytes=4096 wbytes=0 …".
func transferred(text string) (in, out int64) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 3 {
			switch fields[1] {
			case "Read":
				in += max(0, number(fields[2]))
			case "Write":
				out += max(0, number(fields[2]))
			}
		}
		for _, field := range fields {
			if n, ok := strings.CutPrefix(field, "rbytes="); ok {
				in += max(0, number(n))
			}
			if n, ok := strings.CutPrefix(field, "wbytes="); ok {
				out += max(0, number(n))
			}
		}
	}
	return in, out
}
