package frozen

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// SearchArchive is Search for a layer that comes as an archive, as Pack writes it, and
// may be hostile: it fails for one that is endless, or has too many findings.
func SearchArchive(stream io.Reader, texts [][]byte) ([]Found, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	s, archive := newSearcher(texts), tar.NewReader(stream)
	var size int64
	for entries := 1; ; entries++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return s.found, nil
		}
		if err == nil && !filepath.IsLocal(header.Name) {
			return nil, fault.New(fault.Denied, "cannot search a layer with %q in it", header.Name)
		}
		if err == nil {
			if size += header.Size; header.Size < 0 || size > mostBytes || entries > mostEntries || len(s.found) > mostFound {
				return nil, fault.New(fault.Denied, "cannot search a layer of more than %d files or %d bytes, or with more than %d findings", mostEntries, int64(mostBytes), mostFound)
			}
			err = s.entry(archive, header)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot search a layer")
		}
	}
}

// Bounds of an archive.
const (
	mostEntries = 4_000_000
	mostBytes   = 64 << 30
	mostFound   = 10_000
)

func (s *searcher) entry(archive *tar.Reader, header *tar.Header) error {
	at := path.Clean(header.Name)
	if header.Typeflag == tar.TypeReg {
		if err := s.file(archive, at); err != nil {
			return err
		}
	}
	for _, text := range []string{header.Linkname, path.Base(at)} {
		s.look([]byte(text), at, make([]bool, len(s.texts)))
	}
	return nil
}

type searcher struct {
	texts   [][]byte
	longest int
	buffer  []byte
	found   []Found
}

func newSearcher(texts [][]byte) *searcher {
	s := &searcher{texts: texts, buffer: make([]byte, 256<<10)}
	for _, text := range texts {
		s.longest = max(s.longest, len(text))
	}
	if 2*s.longest > len(s.buffer) {
		s.buffer = make([]byte, 2*s.longest)
	}
	return s
}

// file reads in overlapping pieces.
func (s *searcher) file(f io.Reader, path string) error {
	known := make([]bool, len(s.texts))
	have := 0
	for {
		n, err := io.ReadFull(f, s.buffer[have:])
		have += n
		s.look(s.buffer[:have], path, known)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		have = copy(s.buffer, s.buffer[have-(s.longest-1):have])
	}
}

func (s *searcher) look(data []byte, path string, known []bool) {
	for n, text := range s.texts {
		if !known[n] && bytes.Contains(data, text) {
			known[n] = true
			s.found = append(s.found, Found{path, n})
		}
	}
}
