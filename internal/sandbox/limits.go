package sandbox

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// NoLimit, as the value of a limit, means that there is none. Zero means that it is
// not set.
const NoLimit = -1

// Limits bound what one sandbox may use. Each value is zero where it is not set and
// negative (NoLimit) where there is no limit.
type Limits struct {
	CPUs      float64       `json:"cpus,omitempty"`                     // processors' worth of time
	Memory    int64         `json:"memory_bytes,omitempty"`             // without caches that the kernel can drop
	PIDs      int64         `json:"pids,omitempty"`                     // processes and threads, the guest's own included
	Disk      int64         `json:"disk_bytes,omitempty"`               // of everything that the sandbox has on disk
	DiskIO    int64         `json:"disk_io_bytes_per_second,omitempty"` // reading and writing, each
	OpenFiles int64         `json:"open_files,omitempty"`               // descriptors of each process
	Time      time.Duration `json:"time_ns,omitempty"`                  // of each command
	Budget    Budget        `json:"budget,omitzero"`                    // of model calls, since the sandbox exists
}

// The names of the limits, the same in configuration, commands and JSON.
const (
	LimitCPUs      = "cpus"
	LimitMemory    = "memory"
	LimitPIDs      = "pids"
	LimitDisk      = "disk"
	LimitDiskIO    = "disk-io"
	LimitOpenFiles = "open-files"
	LimitTime      = "time"
	LimitBudget    = "budget"
)

// LimitNames lists the limits in the order of listings.
func LimitNames() []string {
	return []string{LimitCPUs, LimitMemory, LimitPIDs, LimitDisk, LimitDiskIO, LimitOpenFiles, LimitTime, LimitBudget}
}

// Get returns a limit as a number in its unit: processors, bytes, a count, seconds,
// or of a budget dollars or else tokens. It is negative for none, and zero where it
// is not set.
func (l Limits) Get(name string) float64 {
	switch name {
	case LimitCPUs:
		return l.CPUs
	case LimitMemory:
		return float64(l.Memory)
	case LimitPIDs:
		return float64(l.PIDs)
	case LimitDisk:
		return float64(l.Disk)
	case LimitDiskIO:
		return float64(l.DiskIO)
	case LimitOpenFiles:
		return float64(l.OpenFiles)
	case LimitTime:
		return l.Time.Seconds()
	case LimitBudget:
		switch b := l.Budget; {
		case b.USD > 0:
			return float64(b.USD) / nano
		case b.Tokens > 0:
			return float64(b.Tokens)
		case b.Said():
			return NoLimit
		}
	}
	return 0
}

// With returns l with the named limit taken from other.
func (l Limits) With(name string, other Limits) Limits {
	switch name {
	case LimitCPUs:
		l.CPUs = other.CPUs
	case LimitMemory:
		l.Memory = other.Memory
	case LimitPIDs:
		l.PIDs = other.PIDs
	case LimitDisk:
		l.Disk = other.Disk
	case LimitDiskIO:
		l.DiskIO = other.DiskIO
	case LimitOpenFiles:
		l.OpenFiles = other.OpenFiles
	case LimitTime:
		l.Time = other.Time
	case LimitBudget:
		l.Budget = other.Budget
	}
	return l
}

// Wider reports whether l allows more than other in the named limit. An unset limit
// counts as no limit.
func (l Limits) Wider(name string, other Limits) bool {
	if name == LimitBudget {
		return l.Budget.wider(other.Budget)
	}
	mine, bound := l.Get(name), other.Get(name)
	switch {
	case bound <= 0:
		return false
	case mine <= 0:
		return true
	}
	return mine > bound
}

// Parse sets the named limit from text as people write it: "1.5", "4GiB",
// "30m", "none".
func (l Limits) Parse(name, text string) (Limits, error) {
	text = strings.TrimSpace(text)
	var err error
	switch name {
	case LimitCPUs:
		l.CPUs, err = parseCPUs(text)
	case LimitMemory:
		l.Memory, err = parseSize(text, 32<<20)
	case LimitDisk:
		l.Disk, err = parseSize(text, 1<<20)
	case LimitDiskIO:
		l.DiskIO, err = parseSize(strings.TrimSuffix(text, "/s"), 64<<10)
	case LimitPIDs:
		l.PIDs, err = parseCount(text, 64)
	case LimitOpenFiles:
		l.OpenFiles, err = parseCount(text, 256)
	case LimitTime:
		l.Time, err = parseTime(text)
	case LimitBudget:
		l.Budget, err = ParseBudget(text)
	default:
		return l, fault.New(fault.Invalid, "there is no limit %q", name).WithHint("one of: %s", strings.Join(LimitNames(), " "))
	}
	if err != nil {
		return l, fault.Wrap(fault.Invalid, err, "cannot use %q for %s", text, name).WithHint("%s=%s", name, limitExample(name))
	}
	return l, nil
}

// limitExample is a valid value.
func limitExample(name string) string {
	switch name {
	case LimitCPUs:
		return "1.5"
	case LimitPIDs:
		return "2000"
	case LimitOpenFiles:
		return "4096"
	case LimitTime:
		return "30m"
	case LimitDiskIO:
		return "50MiB/s"
	case LimitBudget:
		return `"5 USD"`
	}
	return "4GiB"
}

// None is how people write that there is no limit.
const None = "none"

func parseCPUs(text string) (float64, error) {
	if text == None {
		return NoLimit, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
		return 0, fmt.Errorf("it is not a number")
	case n < 0.01: // the kernel's smallest quota is 1 ms of 100 (sched-bwc.rst)
		return 0, fmt.Errorf("it is less than 0.01")
	case n > 1<<16:
		return 0, fmt.Errorf("it is more than %d", 1<<16)
	}
	return n, nil
}

func parseCount(text string, least int64) (int64, error) {
	if text == None {
		return NoLimit, nil
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("it is not a whole number")
	case n < least:
		return 0, fmt.Errorf("it is less than %d", least)
	case n > 1<<22: // PID_MAX_LIMIT, proc(5)
		return 0, fmt.Errorf("it is more than %d", 1<<22)
	}
	return n, nil
}

// units of sizes. A bare letter means powers of two, as in programs for developers.
func units() map[string]int64 {
	return map[string]int64{
		"": 1, "b": 1,
		"k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20,
		"g": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tib": 1 << 40,
		"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	}
}

func parseSize(text string, least int64) (int64, error) {
	if text == None {
		return NoLimit, nil
	}
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, known := units()[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	n, err := strconv.ParseFloat(strings.ReplaceAll(digits, "_", ""), 64)
	switch {
	case err != nil || !known || math.IsNaN(n) || math.IsInf(n, 0):
		return 0, fmt.Errorf("it is not a size")
	case n*float64(unit) < float64(least):
		return 0, fmt.Errorf("it is less than %s", Bytes(least))
	case n*float64(unit) > 1<<60:
		return 0, fmt.Errorf("it is more than %s", Bytes(1<<60))
	}
	return int64(n * float64(unit)), nil
}

func parseTime(text string) (time.Duration, error) {
	if text == None {
		return NoLimit, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("it is not a duration")
	case d < time.Second:
		return 0, fmt.Errorf("it is less than a second")
	}
	return d, nil
}

// Text is the named limit as people write it; empty where it is not set.
func (l Limits) Text(name string) string {
	switch n := l.Get(name); {
	case n == 0:
		return ""
	case n < 0:
		return None
	case name == LimitCPUs:
		return strconv.FormatFloat(n, 'f', -1, 64)
	case name == LimitPIDs || name == LimitOpenFiles:
		return strconv.FormatInt(int64(n), 10)
	case name == LimitTime:
		return durationText(l.Time)
	case name == LimitBudget:
		return l.Budget.String()
	case name == LimitDiskIO:
		return Bytes(l.DiskIO) + "/s"
	case name == LimitDisk:
		return Bytes(l.Disk)
	}
	return Bytes(l.Memory)
}

// durationText drops the zero units that time.Duration prints.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Bytes is a size as people write it: the largest binary unit, with one
// decimal where it is not whole.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	text := strconv.FormatFloat(value, 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + units[unit]
}

// Limit is one limit as it applies to a sandbox.
type Limit struct {
	Name  string `json:"name"`
	Value string `json:"value"` // as people write it; "none" where there is none
	// By says what enforces it: a control group of the kernel ("cgroup v1", "cgroup
	// v2"), "rlimit", "keeper" or "guest". It is empty where nothing does, which
	// only --allow-degraded permits.
	By string `json:"by"`
	// From says where the value comes from: "default", "user" (the human's own
	// file), "repository" or "command" (litterbox limits).
	From string `json:"from"`
}
