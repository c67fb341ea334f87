package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/ownership"
)

var errChanged = errors.New("its content is not what was unpacked")

// verified opens a program that has the hash and that no other user controls,
// ready to execute. The hash is taken on the descriptor that is executed, so
// nothing can be put in the program's place in between.
func verified(path, hash string) (*os.File, error) {
	if err := ownership.Check(path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errChanged
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if file, err = executable(file); err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, 1<<40)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if hex.EncodeToString(sum.Sum(nil)) != hash {
		return nil, errors.Join(errChanged, file.Close())
	}
	return file, nil
}
