package frozen

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// rewrite copies one file with other content, and the directories above it.
func (c *copier) rewrite(top *os.File, path string, edit func([]byte) []byte) (err error) {
	parent, name := filepath.Dir(path), filepath.Base(path)
	if parent == "." {
		parent = ""
	}
	made, err := c.above(c.to, parent, []string{""})
	if err != nil {
		return err
	}
	from, err := hostile.OpenAt(top, parent, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer from.Close()
	var st unix.Stat_t
	if err := unix.Fstatat(int(from.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil // not a file that can be rewritten
	}
	if st.Size > largestRewritten {
		return fault.New(fault.Unsupported, "it is larger than %d bytes", largestRewritten)
	}
	in, done, err := enter(from, name, &st, unix.O_RDONLY, 0o400)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(in, largestRewritten))
	if err = errors.Join(err, done()); err != nil {
		return err
	}
	to, err := hostile.OpenAt(c.to, parent, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer to.Close()
	fd, err := unix.Openat(int(to.Fd()), name, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	_, err = out.Write(edit(content))
	if err == nil {
		err = c.finish(fd, "", &st)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	for n := len(made) - 1; n > 0; n-- { // the top exists already
		if err := c.like(top, made[n]); err != nil {
			return err
		}
	}
	return nil
}
