package keeper

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// diskWatch knows how much a sandbox has on disk, without looking through its
// files each time. What it has can have grown by no more than the whole file
// system has, so a count is only due when that would be too much: asking the
// file system costs a microsecond, counting grows with the files.
type diskWatch struct {
	dir     string
	started space  // of the file system when the keeper began
	counted space  // of the file system at the last count
	known   amount // the sandbox's at the last count
	took    time.Duration
	at      time.Time // of the last count
	born    time.Time
	// What was there after everything had been ended: until it grows again,
	// somebody may be deleting.
	allowed amount
	// frozen are the layers that it stands on, which never change.
	frozen map[string]amount
}

// below is what was frozen of what the sandbox wrote: a snapshot makes no room.
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
			d.frozen[name] = usage(filepath.Join(frozen.Store(d.dir), name))
		}
		total = total.plus(d.frozen[name])
	}
	return total
}

// amount is what lies in a tree of files, in bytes and inodes.
type amount struct {
	bytes, inodes int64
	hidden        bool // some directory could not be read
}

// space is what is taken of a file system.
type space struct {
	bytes, inodes         int64
	freeBytes, freeInodes int64
}

// inodeBytes is what a file counts at least: one that is empty takes room too.
const inodeBytes = 4 << 10

func (a amount) plus(b amount) amount {
	return amount{a.bytes + b.bytes, a.inodes + b.inodes, a.hidden || b.hidden}
}

func (a amount) size() int64 { return max(a.bytes, a.inodes*inodeBytes) }

func newDiskWatch(dir string) diskWatch {
	now, _ := spaceOf(dir) // without an answer nothing is ever due
	return diskWatch{dir: dir, started: now, born: time.Now()}
}

const (
	// diskFirst is when the first count is due: the first command of a fresh
	// sandbox need not share the processor with it.
	diskFirst = 2 * time.Second
	// A count is followed by a rest of diskRest times what it took.
	diskRest    = 10
	diskRestMin = 100 * time.Millisecond
)

// exceeded says what is too much; empty when nothing is, and when what is too
// much has not grown since everything was ended.
func (d *diskWatch) exceeded(limit int64) string {
	now, err := spaceOf(d.dir)
	if err != nil || limit <= 0 || time.Since(d.born) < diskFirst {
		return ""
	}
	// Whatever the limit in bytes, the host needs some inodes.
	files := (d.started.freeInodes + 1) / 2
	most := amount{bytes: max(limit, d.allowed.size()), inodes: max(files, d.allowed.inodes)}
	possible := amount{
		bytes:  d.known.bytes + max(0, now.bytes-d.counted.bytes),
		inodes: d.known.inodes + max(0, now.inodes-d.counted.inodes),
	}
	due := d.at.IsZero() || possible.size() > most.bytes || files > 0 && possible.inodes > most.inodes
	if !due || time.Since(d.at) < max(diskRestMin, diskRest*d.took) {
		return ""
	}
	began := time.Now()
	d.known, d.counted = usage(d.dir).plus(d.below()), now
	d.took, d.at = time.Since(began), time.Now()
	if d.known.hidden {
		// A directory without permissions is no place to hide files in.
		d.known.bytes = max(d.known.bytes, now.bytes-d.started.bytes)
	}
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
