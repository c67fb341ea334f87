package engine

import (
	"bufio"
	"context"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// archivePiece is how much of an archive is sent at once, so that many small files
// share a frame.
const archivePiece = 32 << 10

// sendArchive unpacks the tar stream that write makes below a directory of the
// sandbox.
func sendArchive(ctx context.Context, stream wire.Stream, into string, write func(io.Writer) error) error {
	archive, writer := io.Pipe()
	go func() {
		pieces := bufio.NewWriterSize(writer, archivePiece)
		err := write(pieces)
		if err == nil {
			err = pieces.Flush()
		}
		writer.CloseWithError(err)
	}()
	defer archive.Close()
	return wire.Unpack(ctx, stream, []byte(into), archive)
}
