package feed

import (
	"bufio"
	"io"
	"math"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// file is content under way. It implements [workspace.File].
type file struct {
	decoder
	stream io.Closer
	entry  workspace.Entry
	holes  int64
	left   int64 // of the chunk under way
	over   bool  // the content has ended, and the file's entry comes next
}

// openFile reads the part before the content.
func openFile(stream io.ReadCloser) (*file, error) {
	f := &file{decoder: decoder{r: bufio.NewReader(stream)}, stream: stream}
	f.magic(contentMagic)
	switch op := f.byte(); {
	case f.err != nil:
	case op == opUnread:
		if why, known := reason(f.number(whyChanging)); known {
			f.fail(why)
		}
		f.fail(malformed("a reason in it is none"))
	case op != opRegular:
		f.fail(malformed("it has an entry of no known kind"))
	default:
		f.entry = f.decoder.entry(workspace.Regular)
		f.holes = int64(f.number(uint64(f.entry.Size)))
	}
	return f, f.err
}

func (f *file) Entry() workspace.Entry { return f.entry }

func (f *file) Holes() (int64, error) { return f.holes, nil }

func (f *file) Close() error { return f.stream.Close() }

func (f *file) Read(p []byte) (int, error) {
	if f.left == 0 && !f.over && f.err == nil {
		f.left = int64(f.number(maxChunk))
		f.over = f.err == nil && f.left == 0
	}
	if f.err != nil {
		return 0, f.err
	}
	if f.over {
		return 0, io.EOF
	}
	n, err := f.r.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	if err != nil {
		f.fail(err)
		return n, f.err
	}
	return n, nil
}

// Again reads the file's entry at the end of its content. If content is left,
// the file has grown meanwhile.
func (f *file) Again() (workspace.Entry, error) {
	if !f.over {
		n, err := f.Read(make([]byte, 1))
		if n > 0 {
			grown := f.entry
			grown.Size = math.MaxInt64
			return grown, nil
		}
		if err != io.EOF {
			return workspace.Entry{}, err
		}
	}
	return f.decoder.entry(workspace.Regular), f.err
}
