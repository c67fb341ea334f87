package live

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Checkout is git's worktree state twice: the human's, and the copy inside.
type Checkout struct {
	GitDir string    // of the checkout, on the host
	Shared string    // the git directory that its worktrees share, on the host
	Dir    string    // the environment's directory: it holds Own and the last agreed state
	Common string    // where Shared is inside
	Format string    // of the objects
	Owner  git.Owner // of files written into Own
}

// In the environment's directory: the replacements inside for .git, and for the
// reflogs.
const (
	OwnDir  = "git"
	LogsDir = "git-logs"
)

const stateFile = "git.json"

// readIndex reads the index of a checkout; nil where there is none.
func readIndex(gitDir string) ([]byte, error) {
	dir, err := hostile.Root(gitDir, ".")
	if err != nil {
		return nil, cannot(err)
	}
	defer dir.Close()
	data, err := readFile(dir, "index")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, cannot(err)
}

// agreed is the state in which both sides were last the same.
type agreed struct {
	Head  string `json:"head"`
	Index string `json:"index"`
}

// Prepare makes Own, or its missing parts.
func (c Checkout) Prepare() error {
	dir, err := c.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := errors.Join(c.directory(LogsDir), c.reflogs()); err != nil {
		return cannot(err)
	}
	return cannot(c.write(dir, "commondir", []byte(c.Common+"\n")))
}

// reflogs makes the directory of the host's reflogs, which a repository has from
// its first commit on: the environment's own takes its place, and nothing inside
// could make it. It belongs to the owner of the repository.
func (c Checkout) reflogs() error {
	dir, err := hostile.Root(c.Shared, ".")
	if err != nil {
		return err
	}
	defer dir.Close()
	of, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if _, err := dir.Lstat("logs"); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Whole or not at all: git outside could not write to one that root has made.
	const fresh = "logs.litterbox"
	if err := dir.Mkdir(fresh, of.Mode().Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if stat, ok := of.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		if err := dir.Lchown(fresh, int(stat.Uid), int(stat.Gid)); err != nil {
			return err
		}
	}
	return dir.Rename(fresh, "logs")
}

func (c Checkout) open() (*os.Root, error) {
	if err := c.directory(OwnDir); err != nil {
		return nil, cannot(err)
	}
	dir, err := hostile.Root(c.Dir, OwnDir)
	return dir, cannot(err)
}

// directory makes one of the environment's directories. One that exists gets its
// owner again: a command that was killed may have made it and not given it away.
func (c Checkout) directory(name string) error {
	path := filepath.Join(c.Dir, name)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return c.Owner.Give(path)
}

func cannot(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "cannot bring the checkout and its environment together")
}

func (c Checkout) give(dir *os.Root, name string) error {
	if !c.Owner.Chown {
		return nil
	}
	return dir.Lchown(name, c.Owner.UID, c.Owner.GID)
}

// write replaces a file of Own in one step.
func (c Checkout) write(dir *os.Root, name string, data []byte) error {
	fresh := name + ".litterbox"
	if err := dir.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := dir.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := c.give(dir, fresh); err != nil {
		return err
	}
	return dir.Rename(fresh, name)
}

// Sync brings HEAD and index together: a change on one side since both were the
// same goes to the other. Where both changed, the environment's counts, and a
// note says so. State that the checkout must not get stays inside, and a note
// says why.
func (c Checkout) Sync() (notes []string, err error) {
	dir, err := c.open()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	host, err := hostile.Root(c.GitDir, ".")
	if err != nil {
		return nil, cannot(err)
	}
	defer host.Close()
	var last agreed
	if data, err := os.ReadFile(filepath.Join(c.Dir, stateFile)); err == nil {
		_ = seal.Decode(data, &last) // damaged counts as none: then the checkout counts
	}
	before := last
	headNote, headErr := c.syncHead(dir, host, &last)
	indexNote, indexErr := c.syncIndex(dir, host, &last)
	for _, note := range []string{headNote, indexNote} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	err = cannot(errors.Join(headErr, indexErr))
	if last != before {
		data, encodeErr := seal.Encode(last)
		if encodeErr == nil {
			encodeErr = git.ReplaceFile(filepath.Join(c.Dir, stateFile), data)
		}
		err = errors.Join(err, cannot(encodeErr))
	}
	return notes, err
}

// comes says which side counts.
func comes(host, own, last string) (in, out, both bool) {
	switch {
	case host == own:
		return false, false, false
	case own == "" || own == last || last == "":
		return true, false, false
	default:
		return false, true, host != last
	}
}

func (c Checkout) syncHead(dir, host *os.Root, last *agreed) (note string, err error) {
	theirs, err := readFile(host, "HEAD")
	if err != nil {
		return "", err
	}
	own, err := readFile(dir, "HEAD")
	if err != nil {
		own = nil
	}
	in, out, both := comes(string(theirs), string(own), last.Head)
	switch {
	case in:
		if err := c.write(dir, "HEAD", theirs); err != nil {
			return "", err
		}
		last.Head = string(theirs)
	case out:
		if !plainHead(string(own), c.Format) {
			return "HEAD inside names neither a branch nor a commit, so that of the checkout stays: " + git.Printable(firstLine(own)), nil
		}
		if err := replaceLocked(host, "HEAD", own); err != nil {
			return lockNote("HEAD", err)
		}
		if last.Head = string(own); both {
			note = "HEAD was changed inside and outside: the checkout has now " + firstLine(own) + ", and had " + firstLine(theirs)
		}
	default:
		last.Head = string(theirs)
	}
	return note, nil
}

func firstLine(data []byte) string {
	line, _, _ := strings.Cut(string(data[:min(len(data), 200)]), "\n")
	return line
}

// plainHead reports whether a HEAD names a branch, or a commit by its id.
func plainHead(head, format string) bool {
	line, ok := strings.CutSuffix(head, "\n")
	if !ok {
		return false
	}
	if name, ok := strings.CutPrefix(line, "ref: refs/heads/"); ok {
		return git.CheckRef(name) == nil
	}
	id, err := hex.DecodeString(line)
	return err == nil && len(id) == git.NewHash(format).Size()
}

func (c Checkout) syncIndex(dir, host *os.Root, last *agreed) (note string, err error) {
	theirs, theirDigest, err := c.index(host)
	if err != nil {
		return "", fmt.Errorf("the checkout's index: %w", err)
	}
	own, ownDigest, err := c.index(dir)
	if err != nil {
		own, ownDigest = nil, "" // whatever it is, it is not git's
	}
	in, out, both := comes(theirDigest, ownDigest, last.Index)
	switch {
	case in && theirs != nil:
		if err := c.write(dir, "index", theirs); err != nil {
			return "", err
		}
		last.Index = theirDigest
	case out:
		body, err := plainIndex(own, c.Format, gitlinks(theirs, c.Format))
		if err != nil {
			return "the index of the environment stays inside: " + err.Error(), nil
		}
		sum := git.NewHash(c.Format)
		sum.Write(body)
		if err := replaceLocked(host, "index", sum.Sum(body[:len(body):len(body)])); err != nil {
			return lockNote("index", err)
		}
		if last.Index = ownDigest; both && theirDigest != "" {
			note = "changes were added to the index inside and outside: that of the environment wins; git add again what is missing"
		}
	default:
		last.Index = theirDigest
	}
	return note, nil
}

// index reads an index; it is empty where there is none.
func (c Checkout) index(dir *os.Root) (data []byte, digest string, err error) {
	data, err = readFile(dir, "index")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err == nil {
		digest, err = indexDigest(data, c.Format)
	}
	return data, digest, err
}

// replaceLocked replaces a file of the checkout's git directory as git does: by
// way of its lock (Documentation/technical/api-lockfile), which ends with it.
func replaceLocked(dir *os.Root, name string, data []byte) error {
	f, err := dir.OpenFile(name+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(name+".lock", name)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(name+".lock"))
	}
	return nil
}

// lockNote says that git outside is at work; the next time does it.
func lockNote(name string, err error) (string, error) {
	if errors.Is(err, fs.ErrExist) {
		return "git outside holds " + name + ".lock: what changed inside comes with the next litterbox env shell", nil
	}
	return "", err
}
