package libvirt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// An image is needed for as long as a machine's disk stands on it, whichever state
// directory the machine belongs to, and wherever that is moved: beside its disk each
// machine has a hard link to the record of its image.

const (
	imageRecord = "image.json"
	// heldForGood, in an image, says that a machine could not be given its link.
	heldForGood = "held"
)

// hold makes the link for the domain.
func (h handle) hold() error {
	record := filepath.Join(h.Image, imageRecord)
	err := os.Link(record, filepath.Join(h.Dir, imageRecord))
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	if _, missing := os.Stat(record); errors.Is(missing, fs.ErrNotExist) {
		return nil // the start, which needs the image, says that it is gone
	}
	// Another file system, or one without links.
	err = os.WriteFile(filepath.Join(h.Image, heldForGood), nil, 0o644)
	if err != nil {
		return driver.Seal(err, "cannot mark the image of the domain as used")
	}
	return nil
}

// inUse reports whether a machine uses an image, as far as is known.
func inUse(image string) bool {
	info, err := os.Stat(filepath.Join(image, imageRecord))
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	_, err = os.Stat(filepath.Join(image, heldForGood))
	return !ok || st.Nlink != 1 || !errors.Is(err, fs.ErrNotExist)
}

func (o Options) stale(built, image string) bool {
	if o.DiskOf == nil {
		return false
	}
	_, stale := o.DiskOf(built, image)
	return stale
}

// oldDisks lists the copies of disks that neither new machines nor present ones use.
func (o Options) oldDisks(built string) ([]driver.Made, error) {
	if o.DiskOf == nil {
		return nil, nil
	}
	records, err := filepath.Glob(filepath.Join(filepath.Dir(built), "*", imageRecord))
	if err != nil {
		return nil, err
	}
	var all []driver.Made
	for _, record := range records {
		dir := filepath.Dir(record)
		if disk, stale := o.DiskOf(built, dir); stale && !inUse(dir) {
			all = append(all, driver.Made{
				Name: diskPrefix + filepath.Base(dir), Kind: driver.MadeDisk, Image: disk, Engine: noLonger, Bytes: allocated(filepath.Join(dir, rootOf(dir))),
			})
		}
	}
	return all, nil
}

// removeDisk removes the copy of a disk. Its record goes first: without one it is no
// image.
func removeDisk(dir string) error {
	return errors.Join(os.Remove(filepath.Join(dir, imageRecord)), os.RemoveAll(dir))
}
