package guest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// The bounds of a search.
const (
	searchSize  = 64 << 20 // bytes of one file; larger ones are skipped
	searchLine  = 64 << 10 // bytes of one line; what follows is not looked at
	searchText  = 240      // bytes of a line that are shown
	searchProbe = 8000     // bytes in which a NUL makes a file binary, as git has it
	maxPattern  = 4 << 10
)

// search looks for lines that match. Regular expressions are RE2, so none takes
// more than linear time.
func (g *guest) search(x *exchange) (wire.Found, error) {
	pattern := string(x.request.Pattern)
	if pattern == "" || len(pattern) > maxPattern {
		return wire.Found{}, fault.New(fault.Invalid, "cannot search for a pattern of %d bytes", len(pattern))
	}
	flags := "(?m)"
	if x.request.Fold {
		flags = "(?mi)"
	}
	re, err := regexp.Compile(flags + pattern)
	if err != nil {
		return wire.Found{}, fault.New(fault.Invalid, "cannot search for %q: %s", pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	w, start, cancel, err := g.begin(x, "search")
	if err != nil {
		return wire.Found{}, err
	}
	defer cancel()
	defer start.Close()
	s := &searcher{walk: w, re: re, lines: bufio.NewReaderSize(nil, searchLine)}
	path := string(w.found.Path)
	info, err := start.Stat()
	switch {
	case err != nil:
		return wire.Found{}, wrap(err, "cannot search %q", path)
	case info.Mode().IsRegular():
		w.found.Path = []byte(filepath.Dir(path)) // what the path of a match is relative to
		err = s.file(start, filepath.Base(path))
		if errors.Is(err, errStop) {
			err = nil
		}
		return w.found, errors.Join(err, w.out.Flush())
	case !info.IsDir():
		return wire.Found{}, fault.New(fault.Invalid, "cannot search %q: it is neither a file nor a directory", path)
	}
	w.file = func(w *walk, dir *os.File, name, path string, kind fs.FileMode) error {
		if !kind.IsRegular() || !w.wanted(name, path) {
			return nil
		}
		f, info, err := openAt(dir, name)
		if err != nil {
			w.found.Skipped++
			return nil
		}
		if info.Size() > searchSize {
			w.found.Skipped++
			return f.Close()
		}
		return errors.Join(s.file(f, path), f.Close())
	}
	err = w.run(start, g.inside(path), g.stack(path))
	return w.found, err
}

type searcher struct {
	walk  *walk
	re    *regexp.Regexp
	lines *bufio.Reader
}

// file searches one file, line by line.
func (s *searcher) file(f io.Reader, path string) error {
	s.lines.Reset(struct{ io.Reader }{io.LimitReader(f, searchSize)})
	head, _ := s.lines.Peek(searchProbe)
	if bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	s.walk.found.Files++
	for number := int64(1); ; number++ {
		if number%1000 == 0 && s.walk.ctx.Err() != nil {
			s.walk.found.Stopped = "time"
			return errStop
		}
		line, err := s.lines.ReadSlice('\n')
		if at := s.re.FindIndex(bytes.TrimSuffix(line, []byte{'\n'})); at != nil && len(line) > 0 {
			if err := s.walk.send(wire.Match{Path: []byte(path), Line: number, Text: around(line, at)}); err != nil {
				return err
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = s.lines.ReadSlice('\n')
		}
		if err != nil {
			return nil // the end, or what cannot be read any further
		}
	}
}

// around cuts a long line so that the match shows.
func around(line []byte, at []int) string {
	line = bytes.TrimRight(line, "\r\n")
	before, after := "", ""
	from, to := 0, len(line)
	if len(line) > searchText {
		if from = max(0, min(at[0]-searchText/4, len(line)-searchText)); from > 0 {
			before = "…"
		}
		if to = min(len(line), from+searchText); to < len(line) {
			after = "…"
		}
	}
	text := line[from:to]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return before + strings.ToValidUTF8(string(text), "\ufffd") + after
}
