package process

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ReadAtOnce is [os.ReadFile] for small files that are replaced and never changed, such
// as records: with four system calls. A command reads dozens of them.
func ReadAtOnce(path string) ([]byte, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if _, err := again(func() (int, error) { return 0, unix.Fstat(fd, &stat) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size == 0 || stat.Size > atOnce {
		return os.ReadFile(path)
	}
	content := make([]byte, stat.Size)
	for read := 0; read < len(content); {
		n, err := again(func() (int, error) { return unix.Read(fd, content[read:]) })
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF // it was cut
		}
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		read += n
	}
	return content, nil
}

// atOnce is the size, in bytes, up to which a file is small.
const atOnce = 1 << 20

// again repeats a call that a signal has interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
