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
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// The bounds of a search.
const (
	searchSize  = 64 << 20 // bytes of one file; larger ones are skipped
	searchLine  = 8 << 20  // bytes of one line; a longer one is skipped
	searchBy    = 64 << 10 // bytes that are read at once
	searchNear  = 20       // lines around a match
	searchText  = 240      // bytes of a line that are shown
	searchProbe = 8000     // bytes in which a NUL makes a file binary, as git has it
	maxPattern  = 4 << 10
)

// search looks for lines that match. Regular expressions are RE2, so none takes
// more than linear time; but that is the product of both lengths.
func (g *guest) search(x *exchange) (wire.Found, error) {
	pattern := string(x.request.Pattern)
	if pattern == "" || len(pattern) > maxPattern {
		return wire.Found{}, fault.New(fault.Invalid, "cannot search for a pattern of %d bytes", len(pattern))
	}
	flags := "(?m)"
	if x.request.Fold {
		flags = "(?mi)"
	}
	if x.request.Context < 0 || x.request.Context > searchNear {
		return wire.Found{}, fault.New(fault.Invalid, "cannot show %d lines around a match: at most %d", x.request.Context, searchNear)
	}
	re, cost, err := compile(flags + pattern)
	if err != nil {
		return wire.Found{}, fault.New(fault.Invalid, "cannot search for %q: %s", pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	w, start, cancel, err := g.begin(x, "search")
	if err != nil {
		return wire.Found{}, err
	}
	defer cancel()
	defer start.Close()
	s := &searcher{walk: w, re: re, cost: cost, lines: bufio.NewReaderSize(nil, searchBy), context: int(x.request.Context)}
	path := string(w.found.Path)
	info, err := start.Stat()
	switch {
	case err != nil:
		return wire.Found{}, wrap(err, "cannot search %q", path)
	case info.Mode().IsRegular():
		w.found.Path = []byte(filepath.Dir(path)) // the path of a match is relative to it
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
	walk    *walk
	re      *regexp.Regexp
	cost    int // steps for each byte, at most
	lines   *bufio.Reader
	long    []byte // holds a line that is longer than the reader's buffer
	context int    // lines to show around a match
}

// file searches one file, line by line.
func (s *searcher) file(f io.Reader, path string) error {
	s.lines.Reset(struct{ io.Reader }{io.LimitReader(f, searchSize)})
	head, _ := s.lines.Peek(searchProbe)
	if bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	s.walk.found.Files++
	near := nearby{walk: s.walk, path: path, lines: s.context}
	for number := int64(1); ; number++ {
		if s.over() {
			return errStop
		}
		line, err := s.next()
		at := s.match(bytes.TrimSuffix(line, []byte{'\n'}))
		if s.over() {
			return errStop
		}
		if err := near.show(number, line, at); err != nil {
			return err
		}
		if err != nil {
			return nil // the end, or no longer readable
		}
	}
}

// next returns the next line; an empty one stands for one that is too long,
// which counts as skipped.
func (s *searcher) next() ([]byte, error) {
	line, err := s.lines.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	s.long = append(s.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) && !s.over() {
		line, err = s.lines.ReadSlice('\n')
		if len(s.long) <= searchLine {
			s.long = append(s.long, line...)
		}
	}
	if len(s.long) > searchLine {
		s.walk.found.Skipped++
		return nil, err
	}
	return s.long, err
}

// over reports whether the time is up, or the client gone.
func (s *searcher) over() bool {
	if s.walk.ctx.Err() == nil {
		return false
	}
	s.walk.found.Stopped = "time"
	return true
}

// swiftly is how many steps a match may take before it must look at the clock.
const swiftly = 16 << 20

// match finds the pattern in a line. If that can take long, the line ends early
// when the time is up.
func (s *searcher) match(line []byte) []int {
	if s.cost*len(line) <= swiftly {
		return s.re.FindIndex(line)
	}
	return s.re.FindReaderIndex(&timed{s: s, line: line})
}

// timed is a line that ends early when the time is up.
type timed struct {
	s    *searcher
	line []byte
	at   int
}

// ReadRune implements io.RuneReader.
func (w *timed) ReadRune() (rune, int, error) {
	if w.at == len(w.line) || w.s.walk.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRune(w.line[w.at:])
	w.at += size
	return r, size, nil
}

// maxSteps bounds how much a machine for a pattern must do for one byte. A
// short pattern can stand for millions, with repetitions of repetitions.
const maxSteps = 20_000

// compile returns the pattern with its cost. Its size is known before memory is
// taken for it.
func compile(pattern string) (*regexp.Regexp, int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	if demandsBreak(parsed) {
		return nil, 0, errors.New("a match lies within one line, so nothing can hold a line break")
	}
	cost := steps(parsed)
	if cost > maxSteps {
		return nil, 0, errors.New("its repetitions make it too large; write fewer of them")
	}
	re, err := regexp.Compile(pattern)
	return re, cost, err
}

// demandsBreak reports whether a pattern only matches text with a line break.
func demandsBreak(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		return slices.ContainsFunc(re.Sub, demandsBreak)
	}
	return false
}

// steps estimates how many instructions a pattern has.
func steps(re *syntax.Regexp) int {
	total := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		total += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		total *= max(re.Min, re.Max, 1)
	}
	return min(total, 1<<30)
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
