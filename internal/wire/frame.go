package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// headerSize is the size of the kind and the length before each payload.
const headerSize = 5

// WriteFrame writes one frame with a single Write, so that frames written
// through a [Writer] never mix. A payload beyond [MaxFrame] is fault.Invalid.
func WriteFrame(w io.Writer, kind Kind, payload []byte) error {
	frame, err := appendFrame(make([]byte, 0, headerSize+min(len(payload), MaxFrame)), kind, payload)
	if err != nil {
		return err
	}
	_, err = w.Write(frame)
	return err
}

func appendFrame(to []byte, kind Kind, payload []byte) ([]byte, error) {
	if len(payload) > MaxFrame {
		return nil, fault.New(fault.Invalid, "cannot send %d bytes in one piece: the limit is %d", len(payload), MaxFrame)
	}
	to = append(to, byte(kind))
	to = binary.BigEndian.AppendUint32(to, uint32(len(payload)))
	return append(to, payload...), nil
}

// WriteJSON writes v as the JSON payload of one frame.
func WriteJSON(w io.Writer, kind Kind, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteFrame(w, kind, payload)
}

// Writer lets several goroutines write frames to one stream. Each Write is
// one whole frame or one failure.
type Writer struct {
	mu    sync.Mutex
	w     io.Writer
	frame []byte
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write passes p on in one piece; [WriteFrame], [WriteJSON] and [Fail] use it.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

// Frame is WriteFrame without an allocation for each frame.
func (w *Writer) Frame(kind Kind, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	frame, err := appendFrame(w.frame[:0], kind, payload)
	if err != nil {
		return err
	}
	w.frame = frame
	_, err = w.w.Write(frame)
	return err
}

// Reader reads frames. It never reads beyond the frame it returns, so a relay
// can look at the first one and copy the rest as bytes.
type Reader struct {
	r       io.Reader
	header  [headerSize]byte
	payload []byte
}

// NewReader returns a Reader on r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next returns the next frame; its payload is valid until the next call. The
// end of the stream is io.EOF between two frames, and io.ErrUnexpectedEOF
// inside one. A length beyond [MaxFrame] is fault.Invalid, and the stream
// cannot be read any further.
func (r *Reader) Next() (Kind, []byte, error) {
	if _, err := io.ReadFull(r.r, r.header[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(r.header[1:])
	if length > MaxFrame {
		return 0, nil, fault.New(fault.Invalid, "cannot read a frame of %d bytes: the limit is %d", length, MaxFrame)
	}
	if int(length) > cap(r.payload) {
		r.payload = make([]byte, length)
	}
	r.payload = r.payload[:length]
	if _, err := io.ReadFull(r.r, r.payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return Kind(r.header[0]), r.payload, nil
}
