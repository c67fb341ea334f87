package frozen

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// copiesFile holds the stamps: its version, the layer and then each file, texts
// with their length before them, numbers as varints.
const (
	copiesFile    = "stamps"
	copiesVersion = 2
	// longestText bounds a path that is read; files of longer ones are copied.
	longestText = 1 << 16
)

// readCopies returns the stamps of the earlier copy; none if there is no copy.
func (b Box) readCopies() copies {
	file, err := os.Open(filepath.Join(b.Dir, copiesFile))
	if err != nil {
		return copies{}
	}
	defer file.Close()
	r := &stampReader{from: bufio.NewReader(file)}
	if r.number() != copiesVersion {
		return copies{}
	}
	c := copies{Layer: r.text(), Files: map[string]stamp{}}
	for r.err == nil && len(c.Files) < mostStamps {
		path := r.text()
		s := stamp{uint64(r.number()), r.number(), r.number(), r.number(), r.number(), r.number()}
		if r.err == nil {
			c.Files[path] = s
		}
	}
	if r.err != nil && !errors.Is(r.err, io.EOF) || c.Layer != filepath.Base(c.Layer) || !exists(b.layer(c.Layer)) {
		return copies{}
	}
	return c
}

type stampReader struct {
	from *bufio.Reader
	err  error // the first one; io.EOF between two texts is the end
}

func (r *stampReader) number() int64 {
	if r.err != nil {
		return 0
	}
	var n int64
	n, r.err = binary.ReadVarint(r.from)
	return n
}

func (r *stampReader) text() string {
	size := r.number()
	if r.err != nil {
		return ""
	}
	if size < 0 || size > longestText {
		r.err = errors.New("too long")
		return ""
	}
	text := make([]byte, size)
	_, r.err = io.ReadFull(r.from, text)
	return string(text)
}

// writeCopies keeps the stamps of a copy. If that fails, the next snapshot
// copies everything. Reading them checks that their layer exists.
func (b Box) writeCopies(c copies) {
	path := filepath.Join(b.Dir, copiesFile)
	if len(c.Files) == 0 {
		_ = os.Remove(path)
		return
	}
	file, err := os.CreateTemp(b.Dir, "."+copiesFile+"-")
	if err != nil {
		return
	}
	to := bufio.NewWriter(file)
	line := appendText(binary.AppendVarint(nil, copiesVersion), c.Layer)
	for path, s := range c.Files {
		if len(path) > longestText {
			continue
		}
		_, _ = to.Write(line) // Flush returns its error
		line = appendText(line[:0], path)
		for _, n := range []int64{int64(s.Inode), s.Size, s.Changed, s.Nanos, s.Modified, s.Other} {
			line = binary.AppendVarint(line, n)
		}
	}
	_, _ = to.Write(line)
	err = errors.Join(to.Flush(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // stamps are never needed
	}
}

func appendText(line []byte, text string) []byte {
	return append(binary.AppendVarint(line, int64(len(text))), text...)
}
