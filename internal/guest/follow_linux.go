package guest

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// follow takes over files that changed outside, wherever the workspace still
// holds what is expected. Running programs see the old file or the new one,
// never half of it.
func (g *guest) follow(x *exchange) (wire.Followed, error) {
	root, err := os.OpenRoot(g.Workspace)
	if err != nil {
		return wire.Followed{}, wrap(err, "cannot open %q", g.Workspace)
	}
	defer root.Close()
	in := &incoming{r: x.in}
	archive := tar.NewReader(in)
	f := follower{root: root}
	done := wire.Followed{Stayed: [][]byte{}}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return done, fault.Wrap(fault.Invalid, err, "cannot read the archive")
		}
		name, err := inside(header.Name)
		if err != nil {
			return done, err
		}
		followed, err := f.one(name, header, archive)
		if err != nil {
			return done, wrap(err, "cannot replace %q", name)
		}
		if !followed {
			done.Stayed = append(done.Stayed, []byte(name))
		}
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return done, fault.Wrap(fault.Unavailable, err, "cannot replace files")
	}
	return done, nil
}

// follower works below the root of the workspace.
type follower struct {
	root *os.Root
	made int // temporary files so far
}

// one takes over one path, and reports whether it now holds what it should.
func (f *follower) one(name string, header *tar.Header, content io.Reader) (bool, error) {
	gone := header.PAXRecords[wire.FollowGone] != ""
	if inGit("/" + name) {
		return false, fault.New(fault.Denied, "git's own files are git's")
	}
	is, err := f.holds(name)
	if err != nil {
		return false, nil //nolint:nilerr // what cannot be read is not what is expected
	}
	if gone {
		if is == wire.FollowNone || is == holdsDir { // also where a directory has taken its place
			return true, nil
		}
		if is != header.PAXRecords[wire.FollowWas] {
			return false, nil
		}
		if err := f.root.Remove(name); err != nil {
			return false, err
		}
		for dir := path.Dir(name); dir != "." && f.root.Remove(dir) == nil; dir = path.Dir(dir) {
		}
		return true, nil
	}
	if is == holdsDir && f.root.Remove(name) == nil { // an empty one
		is = wire.FollowNone
	}
	temp, will, err := f.write(header, content)
	if err != nil {
		return false, err
	}
	if is != will && is != header.PAXRecords[wire.FollowWas] {
		return false, f.root.Remove(temp)
	}
	err = f.root.MkdirAll(path.Dir(name), 0o755)
	if err == nil {
		err = f.root.Rename(temp, name)
	}
	if err != nil {
		err = errors.Join(err, f.root.Remove(temp))
		if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EEXIST) {
			return false, nil // a file is where a directory should be, or the other way round
		}
	}
	return err == nil, err
}

const holdsDir = "directory"

// holds says what is at a path, in the words of [wire.FollowWas].
func (f *follower) holds(name string) (string, error) {
	info, err := f.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return wire.FollowNone, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return holdsDir, nil
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := f.root.Readlink(name)
		return "link " + to, err
	case !info.Mode().IsRegular():
		return "special", nil
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, struct{ io.Reader }{file}); err != nil {
		return "", err
	}
	return "file " + hex.EncodeToString(sum.Sum(nil)), nil
}

// write makes the new file inside .git where there is one: no commit taken
// meanwhile sees it there. It returns what the file holds.
func (f *follower) write(header *tar.Header, content io.Reader) (temp, holds string, err error) {
	f.made++
	temp = partialPrefix + "follow-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(f.made)
	if info, err := f.root.Lstat(".git"); err == nil && info.IsDir() {
		temp = ".git/" + temp
	}
	_ = f.root.Remove(temp) // a leftover of a guest that was killed
	if header.Typeflag == tar.TypeSymlink {
		return temp, "link " + header.Linkname, f.root.Symlink(header.Linkname, temp)
	}
	if header.Typeflag != tar.TypeReg {
		return "", "", fault.New(fault.Invalid, "neither a file nor a link")
	}
	file, err := f.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), content)
	err = errors.Join(err, file.Chmod(fs.FileMode(header.Mode).Perm()), file.Close())
	if err != nil {
		return "", "", errors.Join(err, f.root.Remove(temp))
	}
	return temp, "file " + hex.EncodeToString(sum.Sum(nil)), nil
}
