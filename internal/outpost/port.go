package outpost

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A port is a byte stream without connections: a serial line of a virtual machine,
// on which each end sees at most that the other is there. Data of an earlier link
// that the machine has not read may still come, and the machine may return to an
// earlier moment in the middle of a link. So the host begins each link with a line
// that has a number of its own, until the machine repeats that number:
//
//	host:    litterbox-dial NUMBER SECONDS
//	machine: litterbox-here NUMBER
//	host:    litterbox-go NUMBER
//	machine: litterbox-link NUMBER
//
// Anything before the last two lines belongs to no link, and the host does not
// wait for the last one before it sends more. SECONDS is the host's clock: a
// machine that was stopped has lost its own time.
const (
	portDial = "litterbox-dial"
	portHere = "litterbox-here"
	portGo   = "litterbox-go"
	portLink = "litterbox-link"
	portOff  = "litterbox-off" // in place of portGo: the machine ends
)

const (
	portAgain = 400 * time.Millisecond // then the host asks again
	portLine  = 128                    // no line of the opening is longer
)

// flush ends a link that the machine believes to be open: it fills the frame
// that was under way, and is not a frame itself.
func flush() []byte { return append(make([]byte, maxFrame+header), '\n') }

// DialPort begins a link over a port. It owns conn when it fails. It fails with
// the error of ctx when the machine does not answer in time.
func DialPort(ctx context.Context, conn net.Conn) (net.Conn, error) {
	return beginPort(ctx, conn, portGo)
}

// EndMachine asks the machine behind a port to write everything to its disks and
// to switch itself off. It returns when the machine has understood, and closes conn.
func EndMachine(ctx context.Context, conn net.Conn) error {
	conn, err := beginPort(ctx, conn, portOff)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err = conn.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		err = nil // it is off
	}
	return errors.Join(err, conn.Close())
}

func beginPort(ctx context.Context, conn net.Conn, last string) (net.Conn, error) {
	number := make([]byte, 16)
	_, _ = rand.Read(number) // never fails, crypto/rand
	id := hex.EncodeToString(number)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // end a pending wait
	r := bufio.NewReaderSize(conn, 64<<10)
	err := knock(ctx, conn, r, id)
	if err == nil {
		_, err = fmt.Fprintf(conn, "%s %s\n", last, id)
	}
	if !stop() || err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, errors.Join(err, conn.Close())
	}
	return &portConn{Conn: conn, r: r, before: portLink + " " + id}, nil
}

// knock asks until the machine answers.
func knock(ctx context.Context, conn net.Conn, r *bufio.Reader, id string) error {
	answered, told := make(chan struct{}), make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		defer close(told)
		for first := true; ; first = false {
			var say []byte
			if !first {
				say = flush()
			}
			// A write that waits ends with the deadline; a machine that is gone, by
			// the reader.
			if _, err := conn.Write(fmt.Appendf(say, "%s %s %d\n", portDial, id, time.Now().Unix())); err != nil {
				return
			}
			select {
			case <-answered:
				return
			case <-ctx.Done():
				return
			case <-time.After(portAgain):
			}
		}
	})
	err := skipTo(r, portHere+" "+id)
	close(answered)
	if err != nil {
		_ = conn.SetDeadline(time.Unix(1, 0)) // to end the other one
	}
	asking.Wait()
	return err
}

// skipTo reads up to the wanted line, and nothing after it.
func skipTo(r *bufio.Reader, want string) error {
	for {
		line, err := portLineOf(r)
		if err != nil {
			return err
		}
		if strings.HasSuffix(line, want) {
			return nil
		}
	}
}

// portLineOf reads a line and keeps its end: anything before that belongs to no
// link.
func portLineOf(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if over := len(line) - portLine; over > 0 {
			line = line[over:]
		}
		switch {
		case err == nil:
			return string(bytes.TrimSuffix(line, []byte("\n"))), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
		line = bytes.Clone(line)
	}
}

// portConn is a link of the host's over a port.
type portConn struct {
	net.Conn
	r      *bufio.Reader
	before string // the line after which the link begins; empty once it was read
}

func (c *portConn) Read(p []byte) (int, error) {
	if c.before != "" {
		if err := skipTo(c.r, c.before); err != nil {
			return 0, err
		}
		c.before = ""
	}
	return c.r.Read(p)
}

// Port is the request of a host that has dialled a port.
type Port struct {
	R      io.Reader // the host's data
	Now    time.Time // by the host's clock
	Number []byte    // the link's, which the host has drawn by chance
	Ended  bool      // the machine should end
}

// AcceptPort waits, in the machine, until a host begins a link over a port.
func AcceptPort(port io.ReadWriter) (Port, error) {
	r := bufio.NewReaderSize(port, 64<<10)
	var id string
	var now time.Time
	for {
		line, err := portLineOf(r)
		if err != nil {
			return Port{}, err
		}
		for _, verb := range []string{portDial, portGo, portOff} {
			if at := strings.LastIndex(line, verb+" "); at > 0 {
				line = line[at:] // after what belongs to no link
			}
		}
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == portDial && isNumber(words[1]):
			seconds, err := strconv.ParseInt(words[2], 10, 64)
			if err != nil {
				continue
			}
			id, now = words[1], time.Unix(seconds, 0)
			if _, err := fmt.Fprintf(port, "\n%s %s\n", portHere, id); err != nil {
				return Port{}, err
			}
		case len(words) == 2 && id != "" && words[1] == id && (words[0] == portGo || words[0] == portOff):
			if _, err := fmt.Fprintf(port, "\n%s %s\n", portLink, id); err != nil {
				return Port{}, err
			}
			number, err := hex.DecodeString(id)
			return Port{R: r, Now: now, Number: number, Ended: words[0] == portOff}, err
		}
	}
}

func isNumber(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}
