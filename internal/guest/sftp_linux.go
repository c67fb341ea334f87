package guest

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// fileServer is the result of OpFiles: from then on the stream speaks SFTP,
// version 3. Paths are the sandbox's own, relative ones begin at the workspace,
// and everything is done with the rights of the guest, which are those of the
// commands inside.
type fileServer struct{ g *guest }

// MarshalJSON makes it the result that the client waits for.
func (*fileServer) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// serve answers until the client has nothing more to ask, or is gone.
func (s *fileServer) serve(stream wire.Stream) {
	handlers := sftp.Handlers{FileGet: s, FilePut: s, FileCmd: s, FileList: s}
	server := sftp.NewRequestServer(stream, handlers, sftp.WithStartDirectory(s.g.here(s.g.Workspace)))
	_ = server.Serve() // the client's end is the ordinary one
}

// Fileread opens a file for reading.
func (s *fileServer) Fileread(r *sftp.Request) (io.ReaderAt, error) { return s.open(r) }

// Filewrite opens a file for writing.
func (s *fileServer) Filewrite(r *sftp.Request) (io.WriterAt, error) { return s.open(r) }

// OpenFile opens a file for both.
func (s *fileServer) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) { return s.open(r) }

// open opens a regular file: a pipe or a device cannot be read at an offset,
// and opening it may block forever.
func (s *fileServer) open(r *sftp.Request) (*os.File, error) {
	asked := r.Pflags()
	flags := os.O_RDONLY
	switch {
	case asked.Read && (asked.Write || asked.Append):
		flags = os.O_RDWR
	case asked.Write || asked.Append || asked.Creat || asked.Trunc:
		flags = os.O_WRONLY
	}
	for flag, wanted := range map[int]bool{os.O_CREATE: asked.Creat, os.O_EXCL: asked.Excl} {
		if wanted {
			flags |= flag
		}
	}
	f, err := os.OpenFile(s.path(r.Filepath), flags|unix.O_NONBLOCK|unix.O_NOCTTY, newMode(r))
	if err != nil {
		return nil, bare(err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = unix.EISDIR
	}
	if err == nil && !info.Mode().IsRegular() {
		err = unix.EINVAL
	}
	if err == nil && asked.Trunc { // only once it is known to be a file
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, bare(errors.Join(err, f.Close()))
	}
	return f, nil
}

// newMode is the mode of a new file. The library keeps the bytes of an open's
// attributes but not which ones they are. Every client that was examined sends
// only the permissions, or, as OpenSSH does with -p, times after them.
func newMode(r *sftp.Request) fs.FileMode {
	const usual = 0o666
	if len(r.Attrs) != 4 && len(r.Attrs) != 12 {
		return usual
	}
	mode := binary.BigEndian.Uint32(r.Attrs)
	if mode > unix.S_IFMT|0o7777 {
		return usual
	}
	return fs.FileMode(mode & 0o777) // set-id bits are never made here
}

// Filecmd changes names and attributes.
func (s *fileServer) Filecmd(r *sftp.Request) error {
	path := s.path(r.Filepath)
	switch r.Method {
	case "Setstat":
		return bare(s.setAttributes(path, r))
	case "Rename":
		// Version 3 of the protocol never replaces.
		return bare(s.rename(path, s.path(r.Target), unix.RENAME_NOREPLACE))
	case "Rmdir":
		return bare(unix.Rmdir(path))
	case "Remove":
		return bare(unix.Unlink(path))
	case "Mkdir":
		mode := uint32(0o777)
		if r.AttrFlags().Permissions {
			mode = uint32(r.Attributes().FileMode().Perm())
		}
		return bare(unix.Mkdir(path, mode))
	case "Link":
		return bare(os.Link(path, s.path(r.Target)))
	case "Symlink":
		return bare(os.Symlink(r.Filepath, s.path(r.Target))) // a link's target is kept as it is
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename replaces an existing file of the new name.
func (s *fileServer) PosixRename(r *sftp.Request) error {
	return bare(s.rename(s.path(r.Filepath), s.path(r.Target), 0))
}

// rename gives a file another name. The guest itself cannot rename a directory
// of the base: the help for that (package overlay) is only for its children.
func (s *fileServer) rename(from, to string, flags uint) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
	if info, statErr := os.Lstat(from); !errors.Is(err, unix.EXDEV) || statErr != nil || !info.IsDir() {
		return err
	}
	if _, statErr := os.Lstat(to); statErr == nil {
		return unix.EEXIST
	}
	path, err := lookPath("mv", "/", s.g.Env)
	if err != nil {
		return unix.EXDEV
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	child, err := s.g.launch(command{
		path: path, argv: []string{"mv", "-T", "--", from, to}, dir: "/", env: s.g.Env, files: []uintptr{null.Fd(), null.Fd(), null.Fd()},
	})
	if err != nil {
		return unix.EXDEV
	}
	<-child.done
	if child.status.ExitStatus() != 0 {
		return unix.EXDEV
	}
	return nil
}

// StatVFS reports how much room there is.
func (s *fileServer) StatVFS(r *sftp.Request) (*sftp.StatVFS, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.path(r.Filepath), &st); err != nil {
		return nil, err
	}
	return &sftp.StatVFS{
		Bsize: uint64(st.Bsize), Frsize: uint64(st.Frsize), Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail,
		Files: st.Files, Ffree: st.Ffree, Favail: st.Ffree, Flag: uint64(st.Flags), Namemax: uint64(st.Namelen),
	}, nil
}

// Filelist lists a directory, or shows one file.
func (s *fileServer) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	path := s.path(r.Filepath)
	if r.Method != "List" {
		info, err := os.Stat(path)
		return listing{info}, bare(err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, bare(err)
	}
	var all listing
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // else it is gone
			all = append(all, info)
		}
	}
	return all, nil
}

// Lstat shows a link itself.
func (s *fileServer) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	info, err := os.Lstat(s.path(r.Filepath))
	return listing{info}, bare(err)
}

// RealPath makes a path absolute, and follows links as far as they lead to
// something.
func (s *fileServer) RealPath(asked string) (string, error) {
	path := s.path(asked)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	return path, nil
}

// Readlink returns the target of a link.
func (s *fileServer) Readlink(asked string) (string, error) {
	to, err := os.Readlink(s.path(asked))
	return to, bare(err)
}

// path resolves a path of the client's.
func (s *fileServer) path(asked string) string {
	if !filepath.IsAbs(asked) {
		asked = filepath.Join(s.g.Workspace, asked)
	}
	return s.g.here(filepath.Clean(asked))
}

// setAttributes changes length, mode and times of the file that a path names
// now: it is held open meanwhile, no matter what the path names next.
func (s *fileServer) setAttributes(path string, r *sftp.Request) error {
	flags, wanted := r.AttrFlags(), r.Attributes()
	if flags.Size {
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Truncate(int64(wanted.Size)), f.Close()); err != nil {
			return err
		}
	}
	if !flags.Permissions && !flags.Acmodtime && !flags.UidGid {
		return nil
	}
	held, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(held)
	at := "/proc/self/fd/" + strconv.Itoa(held)
	if s.g.Shared != nil && !s.g.Shared.writes(at) {
		return unix.EPERM
	}
	if flags.UidGid {
		var st unix.Stat_t
		if err := unix.Fstat(held, &st); err != nil {
			return err
		}
		if st.Uid != wanted.UID || st.Gid != wanted.GID {
			return unix.EPERM // as for every process inside
		}
	}
	if flags.Permissions {
		if err := unix.Fchmodat(unix.AT_FDCWD, at, uint32(wanted.FileMode().Perm()), 0); err != nil {
			return err
		}
	}
	if flags.Acmodtime {
		return os.Chtimes(at, time.Unix(int64(wanted.Atime), 0), time.Unix(int64(wanted.Mtime), 0))
	}
	return nil
}

// writes reports whether modes and times may change of the file that a path of
// /proc leads to.
func (s *Shared) writes(held string) bool {
	real, err := os.Readlink(held)
	if err != nil {
		return false
	}
	for _, dir := range s.Writable {
		if real == dir || strings.HasPrefix(real, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

// listing is a directory that was read.
type listing []os.FileInfo

// ListAt copies what fits.
func (l listing) ListAt(into []os.FileInfo, from int64) (int, error) {
	if from >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(into, l[from:])
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

// bare is the number of a failed system call: the protocol has codes for the
// usual ones, and the path in the error is not the client's.
func bare(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}
