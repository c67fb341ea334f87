package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/ownership"
)

var errChanged = errors.New("its content is not what was unpacked")

// verified opens a program that has the hash and that no other user controls,
// ready to execute. The hash is taken on the descriptor that is executed, so
// nothing can be put in the program's place in between.
//
// Hashing both programs takes as long as everything else that a create does
// here. So a hash that was right is remembered beside the program, with what the
// kernel changes at every change of a file; as long as that is the same, the
// hash is not taken again.
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
	state, changed := stateOf(info)
	if state != "" && remembered(path) == state {
		return executable(file)
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
	if state != "" && time.Since(changed) > settled {
		remember(path, state)
	}
	return file, nil
}

// settled is the age from which on a file's times say whether it has changed:
// two changes within one tick of the kernel's clock can leave the same time, and
// a tick takes up to 10 ms (time(7), jiffies at 100 Hz).
const settled = time.Second

// stateSuffix follows the program's name in the name of the file that remembers.
const stateSuffix = ".hashed"

// remembered returns the state of a program when its hash was right; "" if that
// is not known, or if another user could have written it.
func remembered(path string) string {
	path += stateSuffix
	if ownership.Check(path) != nil {
		return ""
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	var state [128]byte
	n, err := file.ReadAt(state[:], 0)
	if !errors.Is(err, io.EOF) {
		return ""
	}
	return string(state[:n])
}

// remember notes the state in one step. Where it fails, the next start takes the
// hash again.
func remember(path, state string) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".hashed-*")
	if err != nil {
		return
	}
	_, err = temp.WriteString(state)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path+stateSuffix)
	}
	if err != nil {
		_ = os.Remove(temp.Name()) // at worst a small file stays
	}
}
