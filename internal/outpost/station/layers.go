package station

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// complete is the file in a layer that marks it as complete. Its time is that of
// the last use.
const complete = "complete"

func (s *Station) layer(key string) string { return filepath.Join(s.Root, "layers", key) }

// files is where the tree of a layer is.
func (s *Station) files(key string) string { return filepath.Join(s.layer(key), "files") }

func (s *Station) incoming(key string) string { return filepath.Join(s.Root, "incoming", key) }

// missing lists the keys that are not there. It dates the use of the others, so
// that nothing drops them before a place uses them.
func (s *Station) missing(keys []string) []string {
	var missing []string
	now := time.Now()
	for _, key := range keys {
		if os.Chtimes(filepath.Join(s.layer(key), complete), now, now) != nil {
			missing = append(missing, key)
		}
	}
	return missing
}

// take receives a layer. Received data stays when the stream is cut, and the next
// attempt goes on after it.
func (s *Station) take(stream *outpost.Stream, q outpost.Request) error {
	if len(q.Keys) != 1 {
		return driver.Joined(driver.ErrUnsupported, errors.New("one layer at a time"))
	}
	key := q.Keys[0]
	ctx := context.Background()
	return s.locked(ctx, key, func() error {
		if len(s.missing(q.Keys)) == 0 { // another host's process was faster
			return outpost.WriteMessage(stream, outpost.Answer{Offset: -1})
		}
		on := q.On
		if on != "" && len(s.missing([]string{on})) > 0 {
			on = ""
		}
		incoming := s.incoming(partKey(key, on))
		if err := os.MkdirAll(filepath.Dir(incoming), 0o700); err != nil {
			return driver.Seal(err, "cannot take a layer")
		}
		f, err := os.OpenFile(incoming, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return driver.Seal(err, "cannot take a layer")
		}
		defer f.Close()
		offset, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return driver.Seal(err, "cannot take a layer")
		}
		if err := outpost.WriteMessage(stream, outpost.Answer{Offset: offset, On: on}); err != nil {
			return err
		}
		if err := spool(f, stream); err != nil {
			return err
		}
		err = s.unpack(ctx, f, key, on)
		if errors.Is(err, outpost.ErrDamaged) { // the next attempt starts over
			err = errors.Join(err, os.Remove(incoming))
		}
		if err != nil {
			return err
		}
		if err := os.Remove(incoming); err != nil {
			return driver.Seal(err, "cannot clear away after a layer")
		}
		return outpost.WriteMessage(stream, outpost.Answer{})
	})
}

// partKey names the received part of a layer. With the files of another layer it is
// different bytes.
func partKey(key, on string) string {
	if on == "" {
		return key
	}
	sum := sha256.Sum256([]byte(key + " on " + on))
	return hex.EncodeToString(sum[:])
}

// spool appends the stream up to its end. An error of the disk must be
// distinguished from a cut, after which nothing more is sent.
func spool(f *os.File, stream io.Reader) error {
	buffer := make([]byte, 128<<10)
	for {
		n, err := stream.Read(buffer)
		if _, failed := f.Write(buffer[:n]); failed != nil {
			return driver.Seal(failed, "cannot take a layer")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// unpack makes a layer beside its place and renames it.
func (s *Station) unpack(ctx context.Context, f *os.File, key, on string) (err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return driver.Seal(err, "cannot read a layer")
	}
	building, err := s.building("layers")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, hostile.Remove(building))
		}
	}()
	files := filepath.Join(building, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return driver.Seal(err, "cannot make a layer")
	}
	own := s.Driver.Ownership("")
	owner := func(string) (int, int) { return -1, -1 }
	if own.ChownLayers {
		owner = func(string) (int, int) { return own.UID, own.GID }
	}
	layers, err := os.OpenRoot(filepath.Join(s.Root, "layers"))
	if err != nil {
		return driver.Seal(err, "cannot read the layers")
	}
	defer layers.Close()
	err = outpost.ReadTreeOn(ctx, f, files, owner, sameIn(layers, on, filepath.Base(building)))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return outpost.ErrDamaged // it was declared whole
	}
	if err != nil {
		return driver.Seal(err, "cannot make a layer")
	}
	if own.ChownLayers {
		if err := os.Lchown(files, own.UID, own.GID); err != nil {
			return driver.Seal(err, "cannot make a layer")
		}
	}
	if err := errors.Join(os.Chmod(files, 0o755), os.WriteFile(filepath.Join(building, complete), nil, 0o600)); err != nil {
		return driver.Seal(err, "cannot finish a layer")
	}
	if err := os.Rename(building, s.layer(key)); err != nil {
		return driver.Seal(err, "cannot finish a layer")
	}
	return nil
}

// sameIn links files of the layer on into one that is being built. Both are read-only
// for everything that uses them.
func sameIn(layers *os.Root, on, building string) func(from, name string) error {
	if on == "" {
		return nil
	}
	return func(from, name string) error {
		from, name = filepath.Join(on, "files", from), filepath.Join(building, "files", name)
		info, err := layers.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			return outpost.ErrDamaged // the layer was made again: without it, then
		}
		if err == nil {
			err = layers.Link(from, name)
		}
		return err
	}
}

// building makes a fresh directory beside the finished ones. The next sweep
// removes one left by a kill.
func (s *Station) building(kind string) (string, error) {
	suffix := make([]byte, 8)
	_, _ = rand.Read(suffix) // never fails, crypto/rand
	dir := filepath.Join(s.Root, kind, partial+hex.EncodeToString(suffix))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", driver.Seal(err, "cannot make a directory")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", driver.Seal(err, "cannot make a directory")
	}
	return dir, nil
}

// partial begins the name of a directory that is being built; no key and no
// place has such a name.
const partial = ".partial-"

// drop removes layers that no place uses, and returns which are gone.
func (s *Station) drop(ctx context.Context, keys []string) ([]string, error) {
	used, err := s.used()
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, key := range keys {
		if slices.Contains(used, key) {
			continue
		}
		err := s.locked(ctx, key, func() error {
			// Renamed first: half of a layer must not look like one.
			building, err := s.building("layers")
			if err != nil {
				return err
			}
			err = os.Rename(s.layer(key), filepath.Join(building, "gone"))
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return errors.Join(err, hostile.Remove(building), removed(s.incoming(key)))
		})
		if err != nil {
			return gone, err
		}
		gone = append(gone, key)
	}
	return gone, nil
}

// removed removes a file that need not be there.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// used lists the layers that places use.
func (s *Station) used() ([]string, error) {
	var used []string
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		r, err := s.read(id)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err // its layers are not known
		}
		used = append(used, r.Layers...)
	}
	return used, nil
}

// The times after which sweep clears away.
const (
	unused    = 14 * 24 * time.Hour // a layer that nothing uses
	abandoned = 24 * time.Hour      // what was begun
)

// sweep drops what has long been unused, and what was begun and never finished.
func (s *Station) sweep(ctx context.Context) error {
	for _, kind := range []string{"layers", "sandboxes"} {
		if err := s.sweepBegun(kind); err != nil {
			return err
		}
	}
	if err := s.sweepGoldens(); err != nil {
		return err
	}
	entries, err := s.entries("layers")
	if err != nil {
		return err
	}
	var old []string
	for _, entry := range entries {
		info, err := os.Stat(filepath.Join(s.Root, "layers", entry.Name(), complete))
		if err == nil && outpost.IsKey(entry.Name()) && time.Since(info.ModTime()) > unused {
			old = append(old, entry.Name())
		}
	}
	if entries, err = s.entries("incoming"); err != nil {
		return err
	}
	for _, entry := range entries { // of a layer that no host has asked for since
		if info, err := entry.Info(); err == nil && outpost.IsKey(entry.Name()) && time.Since(info.ModTime()) > unused && !slices.Contains(old, entry.Name()) {
			old = append(old, entry.Name())
		}
	}
	_, err = s.drop(ctx, old)
	return err
}

// sweepBegun removes directories left half built by a kill.
func (s *Station) sweepBegun(kind string) error {
	entries, err := s.entries(kind)
	for _, entry := range entries {
		info, gone := entry.Info()
		if gone == nil && strings.HasPrefix(entry.Name(), partial) && time.Since(info.ModTime()) > abandoned {
			if err := hostile.Remove(filepath.Join(s.Root, kind, entry.Name())); err != nil {
				return driver.Seal(err, "cannot clear away what a crash has left")
			}
		}
	}
	return err
}

// sweepGoldens removes goldens that a crash has left half made.
func (s *Station) sweepGoldens() error {
	entries, err := s.entries("goldens")
	for _, entry := range entries {
		info, gone := entry.Info()
		_, err := os.Lstat(filepath.Join(s.golden(entry.Name()), complete))
		if gone == nil && errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > abandoned {
			if err := s.removeGolden(entry.Name()); err != nil {
				return err
			}
		}
	}
	return err
}

// entries lists one of the station's directories, which need not exist.
func (s *Station) entries(kind string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(filepath.Join(s.Root, kind))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, driver.Seal(err, "cannot list what the outpost keeps")
	}
	return entries, nil
}
