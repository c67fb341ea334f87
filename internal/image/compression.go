package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// decompress tells by the first bytes how a stream is compressed. A file that
// is not comes back as nil, at its beginning, so that it can be sought in.
// close ends what the reading needed.
func decompress(ctx context.Context, stream io.Reader) (plain io.Reader, close func() error, err error) {
	nothing := func() error { return nil }
	if f, ok := stream.(*os.File); ok {
		start := make([]byte, 4)
		n, err := f.ReadAt(start, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, fault.Wrap(fault.Unavailable, err, "cannot read it")
		}
		if !isGzip(start[:n]) && !isZstd(start[:n]) {
			return nil, nothing, nil
		}
	}
	buffered := bufio.NewReaderSize(stream, 64<<10)
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fault.Wrap(fault.Unavailable, err, "cannot read it")
	}
	switch {
	case isGzip(start):
		plain, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, fault.Wrap(fault.Invalid, err, "cannot decompress it")
		}
		return plain, plain.Close, nil
	case isZstd(start):
		return zstd(ctx, buffered)
	}
	return buffered, nothing, nil
}

func isGzip(start []byte) bool { return bytes.HasPrefix(start, []byte{0x1f, 0x8b}) }

func isZstd(start []byte) bool { return bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}) }

// zstd has the host's program decompress: Go's library has no reader, and the
// known one costs every start of this program, image or not.
func zstd(ctx context.Context, stream io.Reader) (io.Reader, func() error, error) {
	program, err := exec.LookPath("zstd")
	if err != nil {
		return nil, nil, fault.New(fault.Unsupported, "it is compressed with zstd, and this machine has no zstd program").
			WithHint("sudo apt install zstd")
	}
	cmd := exec.CommandContext(ctx, program, "-dcq")
	var complaint strings.Builder
	cmd.Env, cmd.Stdin, cmd.Stderr = []string{}, stream, &limited{&complaint, 1 << 10}
	cmd.WaitDelay = zstdPatience
	plain, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, fault.Wrap(fault.Unavailable, err, "cannot run zstd")
	}
	end := func() error {
		// Whoever read to the end has seen everything; otherwise it dies of
		// the closed pipe, which is no news.
		rest, copyErr := io.Copy(io.Discard, io.LimitReader(plain, 1))
		if rest > 0 || copyErr != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return nil
		}
		if err := cmd.Wait(); err != nil {
			return fault.New(fault.Invalid, "cannot decompress it: %s", fmt.Sprintf("%q", strings.TrimSpace(complaint.String())))
		}
		return nil
	}
	return plain, end, nil
}

// zstdPatience is how long a read that feeds an ended zstd may still last.
const zstdPatience = 5 * time.Second

// limited keeps the first bytes that are written.
type limited struct {
	to   *strings.Builder
	room int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.room)
	l.room -= n
	l.to.Write(p[:n])
	return len(p), nil
}
