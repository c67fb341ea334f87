package guest

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"golang.org/x/sys/unix"
)

// Where the whole of a long output is kept: on disk, unlike /run, and only the
// newest ones.
const (
	wholeDir    = "/tmp/litterbox"
	wholePrefix = "output-"
	wholeSuffix = ".txt"
	wholeMax    = 32 << 20 // bytes of one output
	wholeFiles  = 16
)

// whole keeps the output of a command, as it came, once it is longer than its
// client shows. output.mu guards it. A nil whole keeps nothing.
type whole struct {
	beyond int64
	name   string
	begun  []byte // output from before there was a file
	file   *os.File
	size   int64
	failed bool
}

func keepWhole(beyond int64, iteration int) *whole {
	const most = 1 << 20 // held in memory until then
	if beyond <= 0 || iteration <= 0 {
		return nil
	}
	return &whole{beyond: min(beyond, most), name: filepath.Join(wholeDir, wholePrefix+strconv.Itoa(iteration)+wholeSuffix)}
}

func (w *whole) write(p []byte) {
	if w == nil || w.failed {
		return
	}
	if w.file == nil {
		w.begun = append(w.begun, p...)
		if int64(len(w.begun)) <= w.beyond {
			return
		}
		if w.file = openWhole(w.name); w.file == nil {
			w.failed, w.begun = true, nil
			return
		}
		p, w.begun = w.begun, nil
	}
	n, err := w.file.Write(p[:min(int64(len(p)), wholeMax-w.size)])
	w.size += int64(n)
	w.failed = err != nil || w.size == wholeMax // the part that is there stays readable
}

// finish closes the file and says where it is.
func (w *whole) finish() (name string, size int64) {
	if w == nil || w.file == nil {
		return "", 0
	}
	w.file.Close()
	return w.name, w.size
}

// openWhole makes the file and drops the oldest ones. The directory is the
// commands' own to change, so anything may be there.
func openWhole(name string) *os.File {
	if err := os.MkdirAll(wholeDir, 0o755); err != nil {
		return nil
	}
	dropWholes()
	_ = os.Remove(name) // of a life before this one
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil
	}
	return file
}

func dropWholes() {
	names, err := proc.ReadNames(wholeDir)
	if err != nil {
		return
	}
	number := func(name string) int {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, wholePrefix), wholeSuffix))
		if err != nil {
			return -1
		}
		return n
	}
	names = slices.DeleteFunc(names, func(name string) bool { return number(name) < 0 })
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	for len(names) >= wholeFiles {
		_ = os.Remove(filepath.Join(wholeDir, names[0]))
		names = names[1:]
	}
}
