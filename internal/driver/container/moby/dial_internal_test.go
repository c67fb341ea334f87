package moby

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
)

// sizes notes how much is asked for at once.
type sizes struct {
	io.Reader
	most int
}

func (s *sizes) Read(p []byte) (int, error) {
	s.most = max(s.most, len(p))
	return s.Reader.Read(p)
}

// What a program in a container says takes no memory of its own choice: of a piece
// of standard error that declares 64 MiB the end is kept.
func TestLongStandardError(t *testing.T) {
	const long = 64 << 20
	from := &sizes{Reader: io.MultiReader(
		bytes.NewReader([]byte{stderr, 0, 0, 0, long >> 24, long >> 16 & 0xff, 0, 0}), io.LimitReader(zeros{}, long-4), strings.NewReader("last"),
		bytes.NewReader([]byte{stdout, 0, 0, 0, 0, 0, 0, 2}), strings.NewReader("on"),
	)}
	s := &stream{r: bufio.NewReader(from)}
	got := make([]byte, 2)
	if _, err := io.ReadFull(s, got); err != nil || string(got) != "on" {
		t.Errorf("after it comes %q, %v; want on", got, err)
	}
	if len(s.said) != maxSaid || !bytes.HasSuffix(s.said, []byte("last")) {
		t.Errorf("of standard error %d bytes are kept, and they end with %q", len(s.said), s.said[max(0, len(s.said)-4):])
	}
	if from.most > 64<<10 {
		t.Errorf("%d bytes were asked for at once", from.most)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
