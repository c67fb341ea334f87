// Package journal keeps what services print: bounded, with a time before each
// line, readable with cat, by offsets that stay valid while files come and go.
//
// A service has one or two files, name.OFFSET.log, where OFFSET is the position
// of the file's first byte in everything that the service has ever printed. A
// full file is followed by a new one, and the one before is removed.
//
// The files lie where the sandbox can change them: reads are bounded and taken as
// text, and nothing outside the directory is ever opened. Start reading at
// [Journal] and [Scan].
package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"golang.org/x/sys/unix"
)

// Dir is the directory of the journals, relative to the home inside.
const Dir = ".local/state/litterbox/services"

const (
	// FileSize is when a file counts as full, in bytes; a service keeps less
	// than two of them.
	FileSize = 4 << 20
	// maxLine is where a longer line is cut into several.
	maxLine = 8 << 10
	stamp   = "2006-01-02T15:04:05.000Z"
)

// The separators between the time and the text of a line.
const (
	printed = " | " // by the service
	noted   = " * " // by its supervisor
)

// Journal is the writing end of one service's output. It is safe for
// concurrent use.
type Journal struct {
	dir  string
	name string

	mu      sync.Mutex
	root    *os.Root // nil until something is printed, and after a failure
	file    *os.File
	base    int64  // offset of the file's first byte
	size    int64  // of the file
	partial []byte // a line that has not ended
	changed chan struct{}
}

// New makes a journal in a directory; the first line opens its file, and makes
// the directory when it is missing.
func New(dir, name string) *Journal {
	return &Journal{dir: dir, name: name, changed: make(chan struct{})}
}

// Print adds output of the service. Unfinished lines wait for their end. Output
// that cannot be written is dropped: a full disk must not stop a service from
// printing.
func (j *Journal) Print(now time.Time, p []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []byte
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 && len(j.partial)+len(p) < maxLine {
			j.partial = append(j.partial, p...)
			break
		}
		piece := p
		if end >= 0 {
			piece = p[:end]
		}
		if room := maxLine - len(j.partial); len(piece) > room {
			piece, end = piece[:room], -1
		}
		out = appendLine(out, now, printed, append(j.partial, piece...))
		j.partial = j.partial[:0]
		p = p[len(piece):]
		if end >= 0 {
			p = p[1:]
		}
	}
	j.write(out)
}

// Flush ends an unfinished line: its service has ended.
func (j *Journal) Flush(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.partial) > 0 {
		j.write(appendLine(nil, now, printed, j.partial))
		j.partial = nil
	}
}

// Note adds a line of the supervisor's own.
func (j *Journal) Note(now time.Time, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(appendLine(nil, now, noted, []byte(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))))
}

// Changed is closed at the next line.
func (j *Journal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

func appendLine(to []byte, now time.Time, mark string, text []byte) []byte {
	to = now.UTC().AppendFormat(to, stamp)
	to = append(to, mark...)
	to = append(to, bytes.TrimSuffix(text, []byte("\r"))...)
	return append(to, '\n')
}

func (j *Journal) write(out []byte) {
	if len(out) == 0 || j.open() != nil {
		return
	}
	n, _ := j.file.Write(out)
	j.size += int64(n)
	close(j.changed)
	j.changed = make(chan struct{})
}

// open makes sure that there is a file with room. A deleted one is followed by
// another.
func (j *Journal) open() error {
	if j.file != nil {
		info, err := j.file.Stat()
		if err == nil && j.size < FileSize && linked(info) {
			return nil
		}
		j.file.Close()
		j.file = nil
		j.base += j.size
		return j.create()
	}
	if j.root == nil {
		err := os.MkdirAll(j.dir, 0o700)
		if err == nil {
			j.root, err = os.OpenRoot(j.dir)
		}
		if err != nil {
			return err
		}
	}
	if files, err := list(j.root, j.name); err == nil && len(files) > 0 {
		last := files[len(files)-1]
		if j.base = last.base; last.size >= FileSize {
			j.base += min(last.size, 2*FileSize)
		}
	}
	return j.create()
}

func (j *Journal) create() error {
	file, err := j.root.OpenFile(fileName(j.name, j.base), os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		// The directory may have been deleted; the next line makes another.
		err = errors.Join(err, j.root.Close())
		j.root = nil
		return err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(errors.New("not a file"), err, file.Close())
	}
	j.file, j.size = file, info.Size()
	files, err := list(j.root, j.name)
	for err == nil && len(files) > 2 {
		err = j.root.Remove(files[0].name)
		files = files[1:]
	}
	return nil
}

func fileName(service string, base int64) string {
	return fmt.Sprintf("%s.%016d.log", service, base)
}

// file is one file of a journal.
type file struct {
	name string
	base int64
	size int64
}

// list finds the files of a journal, oldest first; the four newest where a
// sandbox has made more.
func list(root *os.Root, service string) ([]file, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := hostile.Entries(dir, 1<<12)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		middle, ok := strings.CutPrefix(entry.Name(), service+".")
		if middle, ok2 := strings.CutSuffix(middle, ".log"); ok && ok2 && entry.Type().IsRegular() {
			base, err := strconv.ParseInt(middle, 10, 64)
			info, infoErr := entry.Info()
			if err == nil && infoErr == nil && base >= 0 && base < 1<<60 && entry.Name() == fileName(service, base) {
				files = append(files, file{entry.Name(), base, info.Size()})
			}
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files[max(0, len(files)-4):], nil
}
