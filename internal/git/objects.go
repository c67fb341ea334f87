package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Objects answers questions about single objects with one lasting git process,
// started with the first question. It is for one goroutine.
type Objects struct {
	c         Command
	ctx       context.Context
	questions *io.PipeWriter
	answers   *bufio.Reader
	pipe      *io.PipeReader
	ended     chan error
	failed    error // what ended it: there are no further answers
}

// Contents reads whole objects: their kinds and contents.
func (r *Repository) Contents(ctx context.Context) *Objects {
	return &Objects{c: r.Command("cat-file", "--batch"), ctx: ctx}
}

// Headers reads the kinds and sizes of objects of any kind and size.
func (r *Repository) Headers(ctx context.Context) *Objects {
	return &Objects{c: r.Command("cat-file", "--batch-check"), ctx: ctx}
}

func (o *Objects) start() {
	stdin, questions := io.Pipe()
	answers, stdout := io.Pipe()
	o.questions, o.pipe, o.answers, o.ended = questions, answers, bufio.NewReader(answers), make(chan error, 1)
	o.c.Stdin, o.c.Stdout = stdin, stdout
	go func() {
		_, err := o.c.Output(o.ctx)
		stdout.CloseWithError(errors.Join(err, io.ErrUnexpectedEOF))
		stdin.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		o.ended <- err
	}()
}

// header asks for an object by a name that git resolves, without line breaks.
func (o *Objects) header(name string) (oid, kind string, size int64, err error) {
	if o.failed != nil {
		return "", "", 0, o.failed
	}
	if o.questions == nil {
		o.start()
	}
	line := ""
	if _, err = io.WriteString(o.questions, name+"\n"); err == nil {
		line, err = o.answers.ReadString('\n')
	}
	if err != nil {
		o.failed = fault.Wrap(fault.Unavailable, err, "cannot read an object")
		return "", "", 0, o.failed
	}
	if n, _ := fmt.Sscanf(line, "%s %s %d\n", &oid, &kind, &size); n != 3 || size < 0 {
		return "", "", 0, fault.New(fault.NotFound, "cannot find the object %q", name)
	}
	return oid, kind, size, nil
}

// Header returns the kind and the size of an object, from [Repository.Headers].
func (o *Objects) Header(name string) (kind string, size int64, err error) {
	_, kind, size, err = o.header(name)
	return kind, size, err
}

// Content returns the kind and the content of an object, from
// [Repository.Contents]. It refuses more than limit bytes.
func (o *Objects) Content(name string, limit int64) (kind string, content []byte, err error) {
	_, kind, size, err := o.header(name)
	if err != nil {
		return "", nil, err
	}
	if size > limit {
		_, err = io.CopyN(io.Discard, o.answers, size+1)
		if err == nil {
			return kind, nil, fault.New(fault.Unsupported, "cannot read the object %q: it is larger than %d bytes", name, limit)
		}
	} else {
		content = make([]byte, size+1) // and a line break
		_, err = io.ReadFull(o.answers, content)
	}
	if err != nil {
		o.failed = fault.Wrap(fault.Unavailable, err, "cannot read an object")
		return "", nil, o.failed
	}
	return kind, content[:size], nil
}

// Close ends the process.
func (o *Objects) Close() error {
	if o.questions == nil {
		return nil
	}
	err := errors.Join(o.questions.Close(), o.pipe.Close(), <-o.ended)
	o.questions, o.failed = nil, fault.New(fault.Internal, "cannot read an object: the reader is closed")
	return err
}

// Stream reads the contents of many objects in the order in which they were asked
// for, with one git process. It is for one goroutine.
type Stream struct {
	names   []string
	answers *bufio.Reader
	pipe    *io.PipeReader
	ended   chan struct{}
	left    int64 // bytes of the object before that were not read
}

// Stream starts to read objects, by names that git resolves, without line breaks.
// The caller closes it.
func (r *Repository) Stream(ctx context.Context, names []string) *Stream {
	s := &Stream{names: names, ended: make(chan struct{})}
	if len(names) == 0 {
		close(s.ended)
		return s
	}
	c := r.Command("cat-file", "--batch", "--buffer")
	answers, stdout := io.Pipe()
	c.Stdin, c.Stdout = strings.NewReader(strings.Join(names, "\n")+"\n"), stdout
	s.pipe, s.answers = answers, bufio.NewReaderSize(answers, 1<<16)
	go func() {
		defer close(s.ended)
		_, err := c.Output(ctx)
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		stdout.CloseWithError(err)
	}()
	return s
}

// Next returns the next object, whose content lasts until the call after. It may be
// left unread.
func (s *Stream) Next() (kind string, size int64, content io.Reader, err error) {
	if len(s.names) == 0 {
		return "", 0, nil, fault.New(fault.Internal, "cannot read an object that was not asked for")
	}
	name := s.names[0]
	s.names = s.names[1:]
	if s.left > 0 {
		if _, err := io.CopyN(io.Discard, s.answers, s.left); err != nil {
			return "", 0, nil, fault.Wrap("", err, "cannot read the objects before %s", name)
		}
		s.left = 0
	}
	line, err := s.answers.ReadString('\n')
	if err != nil {
		return "", 0, nil, fault.Wrap("", err, "cannot read the object %s", name)
	}
	f := strings.Fields(line)
	if len(f) != 3 {
		return "", 0, nil, fault.New(fault.NotFound, "cannot find the object %q", name)
	}
	size, err = strconv.ParseInt(f[2], 10, 64)
	if err != nil || size < 0 {
		return "", 0, nil, fault.New(fault.Internal, "cannot read the size of the object %q", name)
	}
	s.left = size + 1 // and a line break
	return f[1], size, &streamed{s, size}, nil
}

// streamed is the content of one object.
type streamed struct {
	s    *Stream
	left int64
}

func (c *streamed) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.s.answers.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	c.s.left -= int64(n)
	if errors.Is(err, io.EOF) && c.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close ends the process.
func (s *Stream) Close() error {
	if s.pipe != nil {
		_ = s.pipe.Close() // never fails; git ends when nothing reads
	}
	<-s.ended
	return nil
}
