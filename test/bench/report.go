package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// row is one line of the table.
type row struct {
	What   string // what was measured
	Where  string // in which repository or with how many; may be empty
	Here   measure
	Beside string // its comparison; empty if there is none
	There  measure
}

// measure is a value with its unit; durations are in seconds.
type measure struct {
	Value float64
	Best  float64 // the best of several; 0 if there was only one
	Unit  string
}

// The units.
const (
	seconds   = "s"
	megabytes = "MB"
	gigabits  = "Gbit/s"
	percent   = "%"
	plain     = ""
)

func (m measure) String() string {
	if m.Unit != seconds {
		return number(m.Value, m.Unit)
	}
	text := duration(m.Value)
	if m.Best > 0 {
		text += " (best " + duration(m.Best) + ")"
	}
	return text
}

func number(value float64, unit string) string {
	switch {
	case unit == plain && value == float64(int(value)):
		return fmt.Sprintf("%.0f", value)
	case unit == plain:
		return fmt.Sprintf("%.1f", value)
	case unit == percent:
		return fmt.Sprintf("%.1f %%", value)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

func duration(value float64) string {
	switch {
	case value >= 10:
		return fmt.Sprintf("%.1f s", value)
	case value < 0.0005:
		return fmt.Sprintf("%.0f µs", value*1e6)
	case value < 0.1:
		return fmt.Sprintf("%.1f ms", value*1e3)
	}
	return fmt.Sprintf("%.0f ms", value*1e3)
}

// name returns the name by which a reader finds the row again.
func (r row) name() string {
	if r.Where == "" {
		return r.What
	}
	return r.What + ", " + r.Where
}

func (r row) ratio() float64 {
	if r.There.Value == 0 {
		return 0
	}
	return r.Here.Value / r.There.Value
}

func (r row) beside() string {
	if r.Beside == "" {
		return "–"
	}
	return r.Beside + " " + r.There.String()
}

func (r row) times() string {
	if r.ratio() == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f ×", r.ratio())
}

// report collects the results of a run, and prints them meanwhile.
type report struct {
	mu      sync.Mutex
	Rows    []row
	Missing []string // what could not be measured, and why
}

func (r *report) add(one row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.Rows) == 0 {
		fmt.Printf("| what | here | beside | ratio |\n|---|---|---|---|\n")
	}
	r.Rows = append(r.Rows, one)
	fmt.Printf("| %s | %s | %s | %s |\n", one.name(), one.Here, one.beside(), one.times())
}

// missing reports what is not measured. It may be called again.
func (r *report) missing(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	r.Missing = append(r.Missing, text)
	fmt.Fprintln(os.Stderr, "bench: not measured:", text)
}

// save and load carry the rows of a run inside a run.
func (r *report) save(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func (r *report) load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var more report
	if err := json.Unmarshal(data, &more); err != nil {
		return err
	}
	r.Rows = append(r.Rows, more.Rows...)
	r.Missing = append(r.Missing, more.Missing...)
	return nil
}

// timed adds a row of two timings; beside is empty if there is only one.
func (b *bench) timed(what, where string, here timing, beside string, other timing) {
	b.report.add(row{What: what, Where: where, Here: here.measure(), Beside: beside, There: other.measure()})
}

// alone adds a row of a value without a comparison.
func (b *bench) alone(what, where string, value float64, unit string) {
	b.report.add(row{What: what, Where: where, Here: measure{Value: value, Unit: unit}})
}

func (t timing) measure() measure {
	return measure{Value: t.median.Seconds(), Best: t.best.Seconds(), Unit: seconds}
}

func once(d time.Duration) timing { return timing{median: d} }
