package cli

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// table prints rows in columns. Each cell passes through clean; a tab in a
// cell would otherwise shift the columns.
func (c *console) table(rows [][]string) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, clean(cell))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if err := c.print("%s\n", strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// counted is a number with the right form of what it counts.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return decimal(n) + " " + more
}

// short is a commit as people read it.
func short(commit string) string {
	if len(commit) > 7 {
		return commit[:7]
	}
	if commit == "" {
		return "-"
	}
	return commit
}

// ago is the age of a moment in its largest unit.
func ago(now, then time.Time) string {
	age := now.Sub(then)
	switch {
	case then.IsZero():
		return "-"
	case age < -time.Minute: // the clock was set back
		return "in the future"
	case age < time.Minute:
		return "just now"
	case age < time.Hour:
		return fmt.Sprintf("%dm ago", age/time.Minute)
	case age < 48*time.Hour:
		return fmt.Sprintf("%dh ago", age/time.Hour)
	}
	return fmt.Sprintf("%dd ago", age/(24*time.Hour))
}

// moment reads a time, or how long ago it was.
func moment(now time.Time, text string) (time.Time, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), true
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// took is a duration with as many digits as a person reads.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// ending says how a command ended.
func ending(code int, signal string, timedOut bool) string {
	switch {
	case timedOut:
		return "timed out"
	case signal != "":
		return "SIG" + signal
	}
	return fmt.Sprintf("exit %d", code)
}

// committed prints the commit of a use case the way git commit does.
func (c *console) committed(name string, it *sandbox.Iteration) error {
	if it == nil {
		return nil
	}
	return c.print("[%s %s] %s\n", clean(name), short(it.Commit), clean(it.Message))
}

// noteCommitted says what a terminal session was committed as.
func (c *console) noteCommitted(it *sandbox.Iteration) {
	if it == nil {
		c.note("nothing changed, so nothing is committed")
		return
	}
	const most = 5
	files := strings.Join(it.Paths[:min(len(it.Paths), most)], ", ")
	if more := it.Changed - most; more > 0 {
		files += " and " + decimal(more) + " more"
	}
	c.note("committed %s: %s (%s)", short(it.Commit), counted(it.Changed, "file", "files"), files)
}
