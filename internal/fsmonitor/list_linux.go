package fsmonitor

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// token is what git remembers of an answer and sends with the next question.
// Our answers do not depend on it.
const token = "litterbox"

// everything is the answer that all files may have changed.
const everything = "/"

// enough is the number of paths beyond which it is quicker for git to look at
// all files itself.
const enough = 20_000

// Main answers one question from git: version 2 of the hook wants a token
// first, version 1 (before git 2.26) does not.
func Main(args []string, out io.Writer) int {
	w := bufio.NewWriter(out)
	if len(args) > 1 && args[1] != "1" {
		_, _ = w.WriteString(token + "\x00") // Flush below reports it
	}
	place := Place{Changes: append([]string{Changes}, frozen()...), Mounts: "/proc/self/mountinfo"}
	var err error
	if place.Workspace, err = os.Readlink(Workspace); err != nil {
		return 1 // git then looks at everything
	}
	for _, path := range List(place) {
		_, _ = w.WriteString(path + "\x00")
	}
	if w.Flush() != nil {
		return 1
	}
	return 0
}

// Place is where to look.
type Place struct {
	Changes   []string // the upper directory, and its earlier frozen layers
	Workspace string   // the only work tree that it answers for
	Mounts    string   // mountinfo, proc_pid_mountinfo(5)
}

// List returns the paths that may have changed. A path with a slash at its end
// stands for everything below it.
func List(p Place) []string {
	here, err := os.Getwd()
	if err != nil || here != p.Workspace {
		return []string{everything} // another work tree that uses this configuration
	}
	mounted, err := mountedBelow(p.Mounts, p.Workspace)
	if err != nil {
		return []string{everything}
	}
	own, err := ownEntries(p)
	if err != nil {
		return []string{everything}
	}
	l := &lister{paths: append(mounted, own...)}
	for _, dir := range p.Changes {
		if err := l.directory(dir, ""); err != nil {
			return []string{everything}
		}
	}
	return l.paths
}

// frozen lists the layers that once were changes.
func frozen() []string {
	entries, err := os.ReadDir(Frozen)
	if err != nil {
		return nil // there are none
	}
	var found []string
	for _, entry := range entries {
		found = append(found, filepath.Join(Frozen, entry.Name()))
	}
	return found
}

type lister struct{ paths []string }

var errEnough = errors.New("too much has changed")

func (l *lister) directory(dir, path string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, entry := range entries {
		if path == "" && entry.Name() == ".git" {
			continue
		}
		name := filepath.Join(path, entry.Name())
		if len(l.paths) > enough {
			return errEnough
		}
		if !entry.IsDir() {
			// A whiteout may hide a directory, and a file replace one.
			l.paths = append(l.paths, name, name+"/")
			continue
		}
		below := filepath.Join(dir, entry.Name())
		if !merged(below) {
			l.paths = append(l.paths, name, name+"/")
			continue
		}
		switch err := l.directory(below, name); {
		case errors.Is(err, errEnough):
			return err
		case err != nil: // closed by its owner, or gone meanwhile
			l.paths = append(l.paths, name, name+"/")
		}
	}
	return nil
}

// merged reports whether the layers show through a directory; overlayfs marks
// where they do not (Documentation/filesystems/overlayfs.rst).
func merged(dir string) bool {
	var value [1]byte
	_, err := unix.Lgetxattr(dir, "user.overlay.opaque", value[:])
	return errors.Is(err, unix.ENODATA)
}

// mountedBelow lists the mounts inside the workspace: they hide files of the
// base that the upper directory knows nothing about.
func mountedBelow(mounts, workspace string) ([]string, error) {
	f, err := os.Open(mounts)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			return nil, fs.ErrInvalid
		}
		point := filepath.Clean(unescape(fields[4]))
		if name, ok := strings.CutPrefix(point, workspace+"/"); ok {
			found = append(found, name, name+"/")
		}
	}
	slices.Sort(found)
	return found, lines.Err()
}

// unescape reads the octal escapes of mountinfo.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
