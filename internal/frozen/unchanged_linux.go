package frozen

import (
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// A snapshot of a running sandbox copies everything written since it was last
// frozen. The next one takes unchanged files from the earlier copy, as another
// name of the same file: frozen files never change.
//
// A file is known to be unchanged by its time of change, which only the kernel sets.
// A write through a mapping sets it when the page becomes dirty, and not again until
// it is clean. So only files count that had no dirty page when they were copied,
// which cachestat(2) tells (Linux 6.5), on file systems that keep that rule.

// copies describes a sandbox's latest copy, in a file beside its record. It is
// never needed: without it everything is copied.
type copies struct {
	Layer string
	Files map[string]stamp // by path in the layer
}

// stamp is the state of a file when it was copied.
type stamp struct {
	Inode           uint64
	Size            int64
	Changed, Nanos  int64
	Modified, Other int64
}

const (
	// mostStamps bounds the memory for stamps; further files are copied.
	mostStamps = 1_000_000
	// settled is how old a change must be: clocks of file systems move in steps.
	settled = time.Second
)

func stampOf(st *unix.Stat_t) stamp {
	changed, modified := st.Ctim, st.Mtim
	return stamp{st.Ino, st.Size, int64(changed.Sec), int64(changed.Nsec), int64(modified.Sec), int64(modified.Nsec)}
}

// since is what a copier knows of the earlier copy, for one part of the layer.
type since struct {
	part   string // its name in the layer
	before copies
	top    *os.File // of that part in the layer before; nil: nothing can be taken from it
	now    *copies
	began  time.Time
}

// open prepares a part of the earlier layer. One that was just swept away, or
// that cannot be opened, counts as none.
func (s *since) open(b Box) {
	if s == nil || s.before.Layer == "" {
		return
	}
	if top, err := hostile.Directory(filepath.Join(b.layer(s.before.Layer), s.part)); err == nil {
		s.top = top
	}
}

func (s *since) close() error {
	if s == nil || s.top == nil {
		return nil
	}
	return s.top.Close()
}

// directory opens the directory of the earlier copy that path is in; nil if it
// has none.
func (s *since) directory(path string) *os.File {
	if s == nil || s.top == nil {
		return nil
	}
	dir, err := hostile.OpenAt(s.top, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	return dir
}

// take gives the earlier copy of an unchanged file its name, and reports whether
// it did.
func (s *since) take(before, to *os.File, name, path string, st *unix.Stat_t) bool {
	if s == nil || before == nil || st.Nlink > 1 {
		return false
	}
	key := s.part + "/" + path
	was, known := s.before.Files[key]
	if !known || was != stampOf(st) || unix.Linkat(int(before.Fd()), name, int(to.Fd()), name, 0) != nil {
		return false
	}
	s.now.Files[key] = was
	return true
}

// copied notes a file that was just copied, if a later change of it will show.
func (s *since) copied(in *os.File, path string, st *unix.Stat_t) {
	if s == nil || st.Nlink > 1 || len(s.now.Files) >= mostStamps || !time.Unix(st.Ctim.Unix()).Before(s.began.Add(-settled)) {
		return
	}
	if clean(in) {
		s.now.Files[s.part+"/"+path] = stampOf(st)
	}
}

// cachestat(2) has one number on all architectures.
const sysCachestat = 451

// clean reports whether no page of a file is dirty or being written; false if
// that cannot be told.
func clean(f *os.File) bool {
	of := struct{ offset, length uint64 }{} // to its end
	var pages struct{ cache, dirty, writeback, evicted, recentlyEvicted uint64 }
	_, _, errno := unix.Syscall6(sysCachestat, f.Fd(), uintptr(unsafe.Pointer(&of)), uintptr(unsafe.Pointer(&pages)), 0, 0, 0)
	return errno == 0 && pages.dirty == 0 && pages.writeback == 0
}

// showsChanges reports whether a directory is on a file system where a write
// through a mapping sets the time of change: on tmpfs it does not.
func showsChanges(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil &&
		slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}, int64(fs.Type))
}
