package keeper

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// diskWatch knows how much a sandbox has on disk, without looking through its
// files each time. It cannot have grown by more than the whole file system has,
// so a count is only due when that would be too much: asking the file system
// costs a microsecond, counting grows with the files.
type diskWatch struct {
	dir     string
	started space  // of the file system when the keeper began
	counted space  // of the file system at the last count
	known   amount // the sandbox's at the last count
	took    time.Duration
	at      time.Time // of the last count
	born    time.Time
	// What was there after everything had been ended: until it grows again,
	// running commands may be deleting.
	allowed amount
	// frozen are the sandbox's lower layers, which never change.
	frozen map[string]amount
}

// below is the frozen part of what the sandbox wrote: a snapshot frees no room.
func (d *diskWatch) below() (total amount) {
	r, err := frozen.Read(d.dir)
	if err != nil {
		return amount{}
	}
	if d.frozen == nil {
		d.frozen = map[string]amount{}
	}
	for _, name := range r.Stack {
		if _, known := d.frozen[name]; !known {
			layer := filepath.Join(frozen.Store(d.dir), name)
			if frozen.IsGolden(layer) { // the sandbox has not written it
				continue
			}
			d.frozen[name] = usage(layer)
		}
		total = total.plus(d.frozen[name])
	}
	return total
}

// amount is the size of a tree of files, in bytes and inodes.
type amount struct {
	bytes, inodes int64
	hidden        bool // some directory could not be read
}

// space is how much of a file system is taken.
type space struct {
	bytes, inodes         int64
	freeBytes, freeInodes int64
}

// inodeBytes is the least that a file counts for: an empty one takes room too.
const inodeBytes = 4 << 10

func (a amount) plus(b amount) amount {
	return amount{a.bytes + b.bytes, a.inodes + b.inodes, a.hidden || b.hidden}
}

func (a amount) size() int64 { return max(a.bytes, a.inodes*inodeBytes) }

func newDiskWatch(dir string) diskWatch {
	now, _ := spaceOf(dir) // without an answer nothing is ever due
	return diskWatch{dir: dir, started: now, born: time.Now()}
}

// slack is how much may be added after everything has been ended: a command is
// recorded, and an overlay marks a deleted file with an inode.
func slack(limit int64) amount {
	bytes := max(128<<10, limit/64)
	return amount{bytes: bytes, inodes: bytes / inodeBytes}
}

const (
	// diskFirst is when the first count is due: the first command of a fresh
	// sandbox need not share the processor with it.
	diskFirst = 2 * time.Second
	// A count is followed by a rest of diskRest times its own duration.
	diskRest    = 10
	diskRestMin = 100 * time.Millisecond
)

// exceeded says what is too much. It is empty when nothing is, and when the
// excess has not grown since everything was ended.
func (d *diskWatch) exceeded(limit int64) string {
	now, err := spaceOf(d.dir)
	if err != nil || limit <= 0 || time.Since(d.born) < diskFirst {
		return ""
	}
	// Regardless of the limit in bytes, the host needs some inodes.
	files := (d.started.freeInodes + 1) / 2
	most := amount{bytes: limit, inodes: files}
	if d.allowed != (amount{}) {
		tolerated := d.allowed.plus(slack(limit))
		most = amount{bytes: max(limit, tolerated.size()), inodes: max(files, tolerated.inodes)}
	}
	possible := amount{
		bytes:  d.known.bytes + max(0, now.bytes-d.counted.bytes),
		inodes: d.known.inodes + max(0, now.inodes-d.counted.inodes),
	}
	due := d.at.IsZero() || possible.size() > most.bytes || files > 0 && possible.inodes > most.inodes
	if !due || time.Since(d.at) < max(diskRestMin, diskRest*d.took) {
		return ""
	}
	d.count(now)
	size := d.known.size()
	switch {
	case size > most.bytes:
		d.allowed = d.known
		return fmt.Sprintf("files reached their limit of %s with %s", sandbox.Limits{Disk: limit}.Text(sandbox.LimitDisk), sandbox.Bytes(size))
	case files > 0 && d.known.inodes > most.inodes:
		d.allowed = d.known
		return fmt.Sprintf("%d files are more than half of what the file system had left", d.known.inodes)
	case size <= limit && (files == 0 || d.known.inodes <= files):
		d.allowed = amount{}
	}
	return ""
}

// count counts what the sandbox has, at a moment when the file system has now.
func (d *diskWatch) count(now space) {
	began := time.Now()
	d.known, d.counted = usage(d.dir).plus(d.below()), now
	d.took, d.at = time.Since(began), time.Now()
	if d.known.hidden {
		// A directory without permissions must not hide files.
		d.known.bytes = max(d.known.bytes, now.bytes-d.started.bytes)
	}
}

// ended counts again after everything has been ended: anything written until
// then is tolerated too, so that it ends no later command.
func (d *diskWatch) ended() {
	now, err := spaceOf(d.dir)
	if err != nil {
		return // the next look counts
	}
	d.count(now)
	d.allowed = d.known
}
