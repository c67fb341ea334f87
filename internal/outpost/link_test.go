package outpost_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// linked makes the two ends of a link.
func linked(t *testing.T, handle func(*outpost.Stream)) *outpost.Link {
	t.Helper()
	here, there := net.Pipe()
	answering := outpost.Accepted(there, handle)
	link := outpost.Dialled(here)
	t.Cleanup(func() { link.Close(); _ = answering.Wait() })
	return link
}

func open(t *testing.T, link *outpost.Link) *outpost.Stream {
	t.Helper()
	s, err := link.Open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStreamsCarryBothWays(t *testing.T) {
	link := linked(t, func(s *outpost.Stream) {
		_, _ = io.Copy(s, s) // failures show on the other end
	})
	// More than a window, of two at the same time.
	content := bytes.Repeat([]byte("outpost "), 400_000)
	done := make(chan error, 2)
	for range 2 {
		go func() {
			s, err := link.Open()
			if err != nil {
				done <- err
				return
			}
			go func() {
				_, err := s.Write(content)
				done <- errors.Join(err, s.CloseWrite())
			}()
			got, err := io.ReadAll(s)
			if err == nil && !bytes.Equal(got, content) {
				err = fmt.Errorf("%d bytes came back of %d", len(got), len(content))
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Streams may be opened by many at once.
func TestStreamsOpenedAtOnce(t *testing.T) {
	link := linked(t, func(s *outpost.Stream) { _, _ = io.Copy(s, s) })
	done := make(chan error, 64)
	for range cap(done) {
		go func() {
			s, err := link.Open()
			if err == nil {
				_, err = s.Write([]byte("x"))
			}
			if err == nil {
				_, err = io.ReadFull(s, make([]byte, 1))
				err = errors.Join(err, s.Close())
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// An unread stream holds no other one up, and takes one window.
func TestStreamThatNobodyReads(t *testing.T) {
	link := linked(t, func(s *outpost.Stream) {
		kind := make([]byte, 1)
		if _, err := s.Read(kind); err == nil && kind[0] == 'f' {
			for {
				if _, err := s.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
		_, _ = s.Write([]byte("answer"))
	})
	flood := open(t, link)
	if _, err := flood.Write([]byte("f")); err != nil {
		t.Fatal(err)
	}
	other := open(t, link)
	if _, err := other.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(other); err != nil || string(got) != "answer" {
		t.Errorf("%q, %v", got, err)
	}
	if err := flood.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := flood.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a deadline that has passed: %v", err)
	}
	if err := flood.Close(); err != nil {
		t.Error(err)
	}
}

// A stream given up in the middle is not taken for whole.
func TestAbortedStreamIsNoEnd(t *testing.T) {
	link := linked(t, func(s *outpost.Stream) {
		_, _ = s.Write([]byte("half"))
		s.Abort()
	})
	if got, err := io.ReadAll(open(t, link)); err == nil {
		t.Errorf("%q is whole", got)
	}
}

// frame is a frame as it appears on the connection.
func frame(kind byte, id uint32, payload string) string {
	head := binary.BigEndian.AppendUint32([]byte{kind}, id)
	return string(binary.BigEndian.AppendUint32(head, uint32(len(payload)))) + payload
}

// A hostile outpost ends its link, and takes no more memory than a window.
func TestHostileFrames(t *testing.T) {
	const hello = "litterbox-outpost 1 1\n"
	huge := string(binary.BigEndian.AppendUint32(append([]byte{'d'}, 0, 0, 0, 1), 1<<31))
	for name, said := range map[string]string{
		"no greeting":               strings.Repeat("x", 100),
		"no numbers":                "litterbox-outpost one two\n",
		"a frame of two gigabytes":  hello + huge,
		"an unknown kind":           hello + frame('z', 1, ""),
		"it opens a stream":         hello + frame('o', 7, ""),
		"credit without end":        hello + strings.Repeat(frame('c', 1, "\x00\x0f\xff\xff"), 3),
		"credit of the wrong size":  hello + frame('c', 1, "\x00"),
		"more than the window":      hello + strings.Repeat(frame('d', 1, strings.Repeat("x", 32<<10)), 40),
		"data after the end":        hello + frame('e', 1, "") + frame('d', 1, "x"),
		"it asks and never listens": hello + strings.Repeat(frame('p', 0, ""), 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			link := outpost.Dialled(here)
			opened := make(chan error, 1)
			go func() {
				_, err := link.Open()
				opened <- err
			}()
			// It reads the beginning, so that the stream is open, and no more.
			if _, err := io.ReadFull(there, make([]byte, len(hello)+9)); err != nil {
				t.Fatal(err)
			}
			if err := <-opened; err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.WriteString(there, said) }() // it is cut off on the way
			if err := link.Wait(); err == nil {
				t.Error("the link ended well")
			}
			there.Close()
		})
	}
}

// Versions one apart understand each other; others name both, whether a stream is
// opened before or after the other end has said its version.
func TestVersions(t *testing.T) {
	for said, works := range map[string]bool{
		"litterbox-outpost 1 1\n": true, "litterbox-outpost 2 1\n": true, "litterbox-outpost 3 2\n": false,
	} {
		here, there := net.Pipe()
		link := outpost.Dialled(here)
		go func() {
			_, _ = io.WriteString(there, said)
			_, _ = io.Copy(io.Discard, there)
		}()
		s, err := link.Open()
		if err != nil && works {
			t.Fatal(err)
		}
		if err == nil && !works {
			_, err = s.Read(make([]byte, 1))
		}
		if works {
			_, _ = io.WriteString(there, frame('d', 1, "yes"))
			got := make([]byte, 3)
			if _, err := io.ReadFull(s, got); err != nil || string(got) != "yes" {
				t.Errorf("%q: %q, %v", said, got, err)
			}
		} else {
			_ = link.Wait()
			_, late := link.Open()
			for _, err := range []error{err, late} {
				if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "version 3") {
					t.Errorf("%q: %v", said, err)
				}
			}
		}
		link.Close()
		there.Close()
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("litterbox-outpost 1 1\n" + frame('d', 1, "x") + frame('e', 1, "")))
	f.Add([]byte("litterbox-outpost 1 1\n" + frame('o', 1, "") + frame('d', 1, "\x00\x00\x00\x02{}")))
	f.Fuzz(func(t *testing.T, said []byte) {
		for _, handle := range []func(*outpost.Stream){nil, func(s *outpost.Stream) { _, _ = io.Copy(io.Discard, s) }} {
			here, there := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			go func() { _, _ = there.Write(said); there.Close() }()
			var link *outpost.Link
			if handle == nil {
				link = outpost.Dialled(here)
				if s, err := link.Open(); err == nil {
					_, _ = io.Copy(io.Discard, s)
				}
			} else {
				link = outpost.Accepted(here, handle)
			}
			if err := link.Wait(); err == nil {
				t.Error("the link ended well")
			}
		}
	})
}
