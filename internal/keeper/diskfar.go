package keeper

import (
	"context"
	"fmt"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// supervised lists the limits that this keeper can keep by itself. It asks
// another machine about files on that machine's disk.
func (k *keeper) supervised() []string {
	names := Supervised(k.traits())
	if k.carrier() != nil {
		names = append(names, sandbox.LimitDisk)
	}
	return names
}

// carrier answers for files in the place's own machine; it is nil when they are
// here.
func (k *keeper) carrier() driver.Carrier {
	if k.traits().Files != sandbox.FilesCarried {
		return nil
	}
	carrier, _ := k.driver.(driver.Carrier)
	return carrier
}

// farDisk knows how much a sandbox has on the disk of its machine. Counting takes
// that machine's time, so it is asked seldom.
type farDisk struct {
	at      time.Time // of the last question
	took    time.Duration
	allowed int64 // what was there after everything had been ended
}

const (
	farDiskRest     = 2 * time.Second // between two questions, at the least
	farDiskPatience = 30 * time.Second
)

// exceeded says what is too much. It is empty when nothing is, when the excess
// has not grown since everything was ended, and when nothing is known.
func (d *farDisk) exceeded(ctx context.Context, files driver.Files, limit int64) string {
	if limit <= 0 || time.Since(d.at) < max(farDiskRest, diskRest*d.took) {
		return ""
	}
	size, err := d.count(ctx, files)
	if err != nil {
		return ""
	}
	tolerated := d.allowed
	if tolerated > 0 {
		tolerated += slack(limit).bytes
	}
	switch {
	case size <= limit:
		d.allowed = 0
	case size > tolerated:
		d.allowed = size
		return fmt.Sprintf("files reached their limit of %s with %s", sandbox.Limits{Disk: limit}.Text(sandbox.LimitDisk), sandbox.Bytes(size))
	}
	return ""
}

func (d *farDisk) count(ctx context.Context, files driver.Files) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, farDiskPatience)
	defer cancel()
	began := time.Now()
	changes, home, err := files.Size(ctx)
	d.took, d.at = time.Since(began), time.Now()
	return max(0, changes) + max(0, home), err
}

// ended counts again after everything has been ended, as [diskWatch.ended] does.
func (d *farDisk) ended(ctx context.Context, files driver.Files) {
	if size, err := d.count(ctx, files); err == nil {
		d.allowed = size
	}
}
