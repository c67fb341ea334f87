//go:build embedguest

package app

import (
	"io"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// UnpackByFull is a zstd.Unpacker: the full program unpacks.
func UnpackByFull(stream io.Reader, window uint64) (io.ReadCloser, error) {
	self := caller.ThisProcess()
	root, err := store.DefaultRoot(&self)
	if err != nil {
		return nil, err
	}
	program, err := payload.OpenFull(root)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	return process.Filter(program, []string{zstdProgram, strconv.FormatUint(window, 10)}, caller.Lasting(self.Env), stream)
}
