package journal

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Line is one line of a journal. Text is as the service printed it: not safe to
// show on a terminal.
type Line struct {
	Offset int64     // of its first byte
	Next   int64     // of the line after it
	Time   time.Time // zero when the line has none: another process wrote into the file
	Own    bool      // written by the supervisor
	Text   string
}

// Scan calls each for every whole line from an offset on, oldest first, until it
// returns false. It returns the offset of the next line to come. Lines that are
// no longer kept are left out. A journal without files is empty.
func Scan(root *os.Root, service string, from int64, each func(Line) bool) (next int64, err error) {
	files, err := list(root, service)
	if err != nil {
		return from, err
	}
	next = from
	for _, f := range files {
		if f.base+f.size <= next && f != files[len(files)-1] {
			continue
		}
		// A sandbox can make the file larger than any journal is: its end is read.
		if f.size > readable {
			next = max(next, f.base+f.size-readable)
		}
		// An offset before the oldest line, or from an earlier journal.
		if next < f.base || f == files[len(files)-1] && next > f.base+f.size {
			next = f.base
		}
		var more bool
		if next, more, err = scanFile(root, f, next, each); err != nil || !more {
			return next, err
		}
	}
	return next, nil
}

// readable is how much of a file is read, in bytes; litterbox's own are smaller.
const readable = 2 * FileSize

func scanFile(root *os.Root, f file, from int64, each func(Line) bool) (next int64, more bool, err error) {
	opened, err := root.OpenFile(f.name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return from, true, nil // it was removed meanwhile
	}
	if err != nil {
		return from, false, err
	}
	defer opened.Close()
	if info, err := opened.Stat(); err != nil || !info.Mode().IsRegular() {
		return from, true, err
	}
	if _, err := opened.Seek(from-f.base, io.SeekStart); err != nil {
		return from, false, err
	}
	// Bounded, however much is added during the read.
	lines := bufio.NewReaderSize(io.LimitReader(opened, readable+FileSize), 64<<10)
	for next = from; ; {
		raw, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return next, true, nil // an unfinished line counts later
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return next, false, err
		}
		line := parse(raw)
		line.Offset = next
		next += int64(len(raw))
		line.Next = next
		if !each(line) {
			return next, false, nil
		}
	}
}

func parse(raw []byte) Line {
	text := strings.TrimSuffix(string(raw), "\n")
	if len(text) < len(stamp)+len(printed) {
		return Line{Text: text}
	}
	at, err := time.Parse(stamp, text[:len(stamp)])
	mark := text[len(stamp) : len(stamp)+len(printed)]
	if err != nil || mark != printed && mark != noted {
		return Line{Text: text}
	}
	return Line{Time: at, Own: mark == noted, Text: text[len(stamp)+len(printed):]}
}

// Find looks for the offset where the last tail lines begin that are not older
// than since; a tail below zero means all of them, a zero time any.
func Find(root *os.Root, service string, tail int, since time.Time) (int64, error) {
	var last []int64 // a ring
	count, first := 0, int64(-1)
	end, err := Scan(root, service, 0, func(line Line) bool {
		if !since.IsZero() && line.Time.Before(since) {
			return true
		}
		if first < 0 {
			first = line.Offset
		}
		switch {
		case tail > 0 && len(last) < tail:
			last = append(last, line.Offset)
		case tail > 0:
			last[count%tail] = line.Offset
		}
		count++
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case tail > 0 && count > tail:
		return last[count%tail], nil
	case tail > 0 && count > 0:
		return last[0], nil
	case tail < 0 && first >= 0:
		return first, nil
	}
	return end, nil
}
