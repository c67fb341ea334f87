package moby

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// dial starts an outpost in the machine, which runs, and gives its standard input
// and output.
func (s *session) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	name := s.order.Machine.Name
	made, err := s.client.ExecCreate(ctx, name, client.ExecCreateOptions{
		User: user, WorkingDir: state, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Cmd: []string{outpostPath, outpost.Verb},
	})
	if err != nil {
		return nil, s.sealed(err, "cannot start the outpost in the container "+name)
	}
	hijacked, err := s.client.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, s.sealed(err, "cannot start the outpost in the container "+name)
	}
	conn := &stream{hijacked: hijacked.HijackedResponse, r: hijacked.Reader}
	// An engine reports a failed start on the outpost's own stream.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := conn.begins(); err != nil {
		_ = conn.Close() // it adds nothing to the error
		return nil, driver.Joined(driver.ErrUnreachable, fault.Wrap("", err, "cannot start the outpost in the container %s", name))
	}
	return conn, nil
}

// stream is the standard input and output of a program in a container. An engine
// puts a header before each piece of output: the stream, three zeros, the length.
type stream struct {
	hijacked client.HijackedResponse

	reading sync.Mutex
	r       *bufio.Reader
	left    uint32 // of the piece that is being read
	said    []byte // the last of standard error

	close sync.Once
}

const (
	stdout = 1
	stderr = 2
	// maxSaid is how much of standard error is kept, for a message.
	maxSaid = 4 << 10
)

// begins waits for the outpost's first byte.
func (s *stream) begins() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	head, err := s.r.Peek(1)
	if err == nil && head[0] > stderr { // no header: an engine's words
		text, _ := io.ReadAll(io.LimitReader(s.r, maxSaid))
		return errors.New(strings.TrimSpace(strings.ToValidUTF8(string(text), "")))
	}
	if err == nil {
		err = s.next()
	}
	if err == nil {
		head, err = s.r.Peek(min(int(s.left), len(greeting)))
	}
	if err == nil && strings.HasPrefix(greeting, string(head)) {
		return nil
	}
	said := string(s.said)
	if err == nil {
		text, _ := io.ReadAll(io.LimitReader(s.r, int64(min(s.left, maxSaid))))
		said = string(text)
	}
	if said = strings.TrimSpace(strings.ToValidUTF8(said, "")); said == "" {
		said = "it ended at once"
	}
	return errors.New(said)
}

// greeting begins an outpost's output.
const greeting = "litterbox-outpost "

// next reads headers up to one of standard output.
func (s *stream) next() error {
	for {
		var head [8]byte
		if _, err := io.ReadFull(s.r, head[:]); err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(head[4:])
		if head[0] == stdout && length > 0 {
			s.left = length
			return nil
		}
		if head[0] != stderr {
			if length > 0 {
				return errors.New("the engine does not keep to its protocol")
			}
			continue
		}
		if err := s.listen(length); err != nil {
			return err
		}
	}
}

// listen reads a piece of standard error, whatever length it declares, and keeps
// the last of it.
func (s *stream) listen(length uint32) error {
	var text [maxSaid]byte
	for left := int64(length); left > 0; {
		n, err := s.r.Read(text[:min(left, maxSaid)])
		s.said = append(s.said, text[:n]...)
		s.said = s.said[max(0, len(s.said)-maxSaid):]
		if left -= int64(n); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) Read(p []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.left == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n, err := s.r.Read(p[:min(len(p), int(s.left))])
	s.left -= uint32(n)
	return n, err
}

func (s *stream) Write(p []byte) (int, error) { return s.hijacked.Conn.Write(p) }

// Close ends the outpost's input, and with it the outpost.
func (s *stream) Close() error {
	s.close.Do(s.hijacked.Close)
	return nil
}
