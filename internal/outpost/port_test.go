package outpost_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// line is a port between a host and a machine: two pipes with memory, as a serial
// line has, so that neither end waits for the other to read.
func line(t *testing.T) (host, machine net.Conn) {
	t.Helper()
	listener, err := net.Listen("unix", t.TempDir()+"/port")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if host, err = net.Dial("unix", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if machine, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close(); machine.Close() })
	return host, machine
}

// echo is a machine that echoes the link's data.
func echo(machine io.ReadWriter) <-chan outpost.Port {
	began := make(chan outpost.Port, 1)
	go func() {
		port, err := outpost.AcceptPort(machine)
		if err == nil {
			began <- port
			_, _ = io.Copy(machine, port.R)
		}
		close(began)
	}()
	return began
}

// says demands that a link carries its bytes and no others.
func says(t *testing.T, link io.ReadWriter) {
	t.Helper()
	sent := bytes.Repeat([]byte("litterbox-dial is a word like any other\n"), 3000)
	go func() { _, _ = link.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(link, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("the link does not carry what was sent: %v, %.80q", err, got)
	}
}

func TestPort(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"nothing before":             "",
		"the middle of a line":       "litterbox-he",
		"lines of an earlier answer": "litterbox-here 0123456789abcdef0123456789abcdef\nlitterbox-link 0123456789abcdef0123456789abcdef\n",
		"much without a line":        strings.Repeat("\x00", 200<<10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, machine := line(t)
			// The remains of an earlier link, in both directions.
			go func() {
				_, _ = io.WriteString(host, before)
				link, err := outpost.DialPort(t.Context(), host)
				if err != nil {
					t.Error(err)
					machine.Close()
					return
				}
				says(t, link)
				link.Close()
			}()
			if _, err := io.WriteString(machine, before); err != nil {
				t.Fatal(err)
			}
			began := echo(machine)
			port := <-began
			if away := time.Since(port.Now); port.R == nil || len(port.Number) != 16 || port.Ended || away > time.Minute || away < -time.Minute {
				t.Errorf("it began with %+v", port)
			}
			<-began
		})
	}
}

// The machine still takes the host for the previous one and reads its first lines
// as frames: the host asks again, and the second question ends that link.
func TestPortBehindALivingLink(t *testing.T) {
	t.Parallel()
	host, machine := line(t)
	opened := make(chan struct{}, 8)
	go func() {
		old := outpost.Accepted(keepOpen{machine}, func(*outpost.Stream) { opened <- struct{}{} })
		_ = old.Wait() // it ends with data that is not a frame
		echo(machine)
	}()
	// The first frame of a link, incomplete.
	if _, err := host.Write([]byte("litterbox-outpost 1 1\nd\x00\x00\x00\x01\x00\x00\x70\x00half")); err != nil {
		t.Fatal(err)
	}
	link, err := outpost.DialPort(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	says(t, link)
	if len(opened) > 0 {
		t.Error("the link before has opened a stream")
	}
}

// keepOpen is a port, which stays when a link over it ends.
type keepOpen struct{ io.ReadWriter }

func (keepOpen) Close() error { return nil }

func TestPortThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	host, machine := line(t)
	go func() { _, _ = io.Copy(io.Discard, machine) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := outpost.DialPort(ctx, host); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it fails with %v", err)
	}
	if _, err := host.Write([]byte("x")); err == nil {
		t.Error("the connection stays open")
	}
}

func TestEndMachine(t *testing.T) {
	t.Parallel()
	host, machine := line(t)
	go func() {
		if port, err := outpost.AcceptPort(machine); err != nil || !port.Ended {
			t.Errorf("the machine hears %+v, %v", port, err)
		}
		machine.Close()
	}()
	if err := outpost.EndMachine(t.Context(), host); err != nil {
		t.Error(err)
	}
}

func FuzzAcceptPort(f *testing.F) {
	const id = "0123456789abcdef0123456789abcdef"
	f.Add([]byte("litterbox-dial " + id + " 1\nlitterbox-go " + id + "\nrest"))
	f.Add([]byte("litterbox-dial " + id + " x\nlitterbox-go " + id + "\n"))
	f.Add([]byte("\x00\x00litterbox-dial " + id + " 1\nlitterbox-off " + id + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		said := &bytes.Buffer{}
		port, err := outpost.AcceptPort(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(data), said})
		if err == nil && !bytes.Contains(data, []byte("litterbox-dial ")) {
			t.Errorf("it began with %+v", port)
		}
		if said.Len() > 4*len(data) {
			t.Errorf("%d bytes are answered to %d", said.Len(), len(data))
		}
	})
}
