package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// Stat is what proc_pid_stat(5) says about a process.
type Stat struct {
	State    byte
	Parent   int
	Flags    uint64 // PF_… of the kernel
	CPU      uint64 // clock ticks, with those of children that were waited for
	Threads  int
	Start    uint64 // clock ticks since boot
	Resident int64  // pages
}

// Over reports whether the process has ended, with at most its exit code left.
func (s Stat) Over() bool { return s.State == 'Z' || s.State == 'X' }

// ReadStat reads the state of an existing process.
func ReadStat(pid int) (Stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	s, ok := ParseStat(data)
	if !ok {
		return Stat{}, errors.New("cannot parse /proc/pid/stat")
	}
	return s, nil
}

// ParseStat reads /proc/pid/stat. The command's name, in parentheses, may hold
// anything, parentheses and line ends included, so fields count from the last
// one.
func ParseStat(data []byte) (s Stat, ok bool) {
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const first, last = 3, 24 // as the manual page counts them
	if len(fields) <= last-first || len(fields[0]) != 1 {
		return Stat{}, false
	}
	ok = true
	number := func(field int) int64 {
		n, err := strconv.ParseInt(string(fields[field-first]), 10, 64)
		ok = ok && err == nil && n >= 0
		return n
	}
	s = Stat{
		State: fields[0][0], Parent: int(number(4)), Flags: uint64(number(9)),
		CPU:     uint64(number(14)) + uint64(number(15)) + uint64(number(16)) + uint64(number(17)),
		Threads: int(number(20)), Start: uint64(number(22)), Resident: number(24),
	}
	if !ok {
		return Stat{}, false
	}
	return s, true
}
