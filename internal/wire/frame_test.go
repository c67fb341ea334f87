package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// frame is one frame with a payload of its own.
type frame struct {
	Kind    wire.Kind
	Payload string
}

// readAll reads frames to the end of r, or to its first defect.
func readAll(r io.Reader) ([]frame, error) {
	var all []frame
	for in := wire.NewReader(r); ; {
		kind, payload, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, frame{kind, string(payload)})
	}
}

func TestFrames(t *testing.T) {
	want := []frame{{'q', "{}"}, {'o', strings.Repeat("x", wire.MaxFrame)}, {'e', ""}, {0, "\x00\xff"}}
	var stream bytes.Buffer
	for i, f := range want {
		write := wire.WriteFrame
		if i%2 == 1 {
			write = func(w io.Writer, k wire.Kind, p []byte) error { return wire.NewWriter(w).Frame(k, p) }
		}
		if err := write(&stream, f.Kind, []byte(f.Payload)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readAll(iotest.OneByteReader(&stream))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFrameIsOneWrite(t *testing.T) {
	var writes countingWriter
	if err := wire.WriteFrame(&writes, 'o', make([]byte, 1000)); err != nil || writes != 1 {
		t.Errorf("%d writes, %v", writes, err)
	}
}

type countingWriter int

func (c *countingWriter) Write(p []byte) (int, error) { *c++; return len(p), nil }

func TestFrameTooLong(t *testing.T) {
	if err := wire.WriteFrame(io.Discard, 'o', make([]byte, wire.MaxFrame+1)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("written: %v", err)
	}
	if _, err := readAll(strings.NewReader("o\xff\xff\xff\xff")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("read: %v", err)
	}
	for _, cut := range []string{"o", "o\x00\x00\x00\x05", "o\x00\x00\x00\x05four"} {
		if _, err := readAll(strings.NewReader(cut)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v", cut, err)
		}
	}
}

// A relay reads the first frame and copies the rest.
func TestReaderTakesNoMoreThanItReturns(t *testing.T) {
	stream := strings.NewReader("q\x00\x00\x00\x02{}the rest")
	if _, _, err := wire.NewReader(stream).Next(); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(stream); string(rest) != "the rest" {
		t.Errorf("left: %q", rest)
	}
}

func TestWriterKeepsFramesWhole(t *testing.T) {
	var stream bytes.Buffer
	w := wire.NewWriter(&stream)
	var writing sync.WaitGroup
	for _, text := range []string{"a", "bb", "ccc"} {
		writing.Go(func() {
			for range 200 {
				_ = w.Frame('o', []byte(text))
				_ = wire.WriteFrame(w, 'x', []byte(text))
			}
		})
	}
	writing.Wait()
	got, err := readAll(&stream)
	if err != nil || len(got) != 1200 {
		t.Fatalf("%d frames, %v", len(got), err)
	}
	for _, f := range got {
		if f.Payload != "a" && f.Payload != "bb" && f.Payload != "ccc" {
			t.Fatalf("mixed: %q", f.Payload)
		}
	}
}

func TestFail(t *testing.T) {
	var stream bytes.Buffer
	err := fault.Wrap(fault.Denied, errors.New("because"), "cannot do %q", "it").WithHint("try harder")
	if err := wire.Fail(&stream, err); err != nil {
		t.Fatal(err)
	}
	got, readErr := readAll(&stream)
	if readErr != nil {
		t.Fatal(readErr)
	}
	text, _ := json.Marshal(wire.Failure{Kind: "denied", Text: `cannot do "it": because`, Hint: "try harder"})
	if diff := cmp.Diff([]frame{{wire.KindError, string(text)}}, got); diff != "" {
		t.Error(diff)
	}
	if err := wire.Fail(&stream, errors.New(strings.Repeat("long ", wire.MaxFrame))); err != nil {
		t.Errorf("a long error does not fit: %v", err)
	}
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", "q", "q\x00\x00\x00\x00", "q\x00\x00\x00\x02{}", "o\x00\x00\x00\x03abcx\x00\x00\x00\x00",
		"o\x00\x04\x00\x00", "o\x00\x04\x00\x01", "o\xff\xff\xff\xff", "\x00\x00\x00\x00\x01", "i\x00\x00\x00\x05ab",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames, err := readAll(bytes.NewReader(stream))
		var again bytes.Buffer
		for _, fr := range frames {
			if len(fr.Payload) > wire.MaxFrame {
				t.Fatalf("a frame of %d bytes", len(fr.Payload))
			}
			if err := wire.WriteFrame(&again, fr.Kind, []byte(fr.Payload)); err != nil {
				t.Fatal(err)
			}
		}
		// The frames read are those of the stream; without an error, all of them.
		if !bytes.HasPrefix(stream, again.Bytes()) || err == nil && again.Len() != len(stream) {
			t.Fatalf("%q was read as %q (%v)", stream, again.Bytes(), err)
		}
	})
}
