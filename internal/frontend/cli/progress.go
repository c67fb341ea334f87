package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

const (
	barDelay    = 500 * time.Millisecond // shorter work shows nothing
	barInterval = 100 * time.Millisecond
	lineDelay   = 3 * time.Second // between plain lines, and before the first
)

// progress shows how far long work is: one line that is drawn over on a
// terminal, and a plain line every few seconds elsewhere. Its zero time is the
// first update of a label, so that work that is over at once shows nothing.
type progress struct {
	out   io.Writer
	bar   bool       // out is a terminal that can erase a line
	width func() int // columns, asked at each drawing

	mu          sync.Mutex
	label       string
	done, total int
	timer       *time.Timer // armed while a label is under way
	drawn       time.Time
	visible     bool   // the line shows a bar
	working     []work // work that cannot be counted, the innermost last; on terminals only
}

// work is something that goes on for as long as it takes.
type work struct {
	label string
	since time.Time
}

// tick is how often the time beside such work moves on.
const tick = time.Second

// update is an engine.Progress.
func (p *progress) update(label string, done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if total == engine.Uncounted {
		p.work(label, done)
		return
	}
	if total > 0 && done >= total {
		p.stop()
		return
	}
	fresh := label != p.label
	p.label, p.done, p.total = label, done, total
	switch {
	case fresh:
		p.arm(p.delay())
	case p.visible && time.Since(p.drawn) >= barInterval:
		p.draw()
	}
}

// work begins or ends work that cannot be counted.
func (p *progress) work(label string, done int) {
	if !p.bar {
		return
	}
	if done == 0 {
		p.working = append(p.working, work{label, time.Now()})
	}
	for i := len(p.working) - 1; done > 0 && i >= 0; i-- {
		if p.working[i].label == label {
			p.working = slices.Delete(p.working, i, i+1)
			break
		}
	}
	if p.label == "" {
		p.stop()
	}
}

// clear removes the bar: something else is about to be printed.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
}

func (p *progress) delay() time.Duration {
	if p.bar {
		return barDelay
	}
	return lineDelay
}

func (p *progress) arm(d time.Duration) {
	if p.timer != nil {
		p.timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.timer == timer { // not stopped while waiting for the lock
			p.draw()
		}
	})
	p.timer = timer
}

func (p *progress) stop() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.label = ""
	if p.visible {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.visible = false
	}
	if len(p.working) > 0 {
		p.arm(p.delay())
	}
}

func (p *progress) draw() {
	p.drawn = time.Now()
	if !p.bar {
		fmt.Fprintln(p.out, p.line())
		p.arm(lineDelay)
		return
	}
	fmt.Fprint(p.out, "\r\x1b[K"+cut(p.line(), p.width()-1))
	p.visible = true
	if p.label == "" {
		p.arm(tick)
	}
}

// line is the state of the work in words, with a bar on a terminal.
func (p *progress) line() string {
	label := clean(p.label)
	if label == "" && len(p.working) > 0 {
		now := p.working[len(p.working)-1]
		label = clean(now.label)
		if passed := time.Since(now.since).Truncate(time.Second); passed >= 2*time.Second {
			label += " (" + passed.String() + ")"
		}
		return label + " ..."
	}
	switch {
	case p.total <= 0 && p.done <= 0:
		return label + " ..."
	case p.total <= 0:
		return fmt.Sprintf("%s: %d", label, p.done)
	case !p.bar:
		return fmt.Sprintf("%s: %d of %d", label, p.done, p.total)
	}
	const cells = 24
	full := cells * p.done / p.total
	return fmt.Sprintf("%s [%s%s] %d%% (%d of %d)", label,
		strings.Repeat("#", full), strings.Repeat(".", cells-full), 100*p.done/p.total, p.done, p.total)
}

// cut shortens s to at most width runes; a line that wraps cannot be erased.
func cut(s string, width int) string {
	runes := []rune(s)
	if width > 0 && len(runes) > width {
		return string(runes[:width])
	}
	return s
}

// clearing is a writer that removes the bar before it writes.
type clearing struct {
	progress *progress
	io.Writer
}

func (c clearing) Write(b []byte) (int, error) {
	c.progress.clear()
	return c.Writer.Write(b)
}
