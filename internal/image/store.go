package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Store is the directory of unpacked layers that all sandboxes of a user share:
//
//	layers/<digest>[-<uid>]   the files of one layer, never changed again
//	names/<hash>.json         what a name stood for when it was last looked up
//
// Its methods may be called from any number of processes at once. A layer is
// unpacked beside its place and renamed, so that kill -9 leaves a directory
// that the next one to unpack it removes.
type Store struct {
	Dir   string
	Owner Owner
	// Progress receives a label, and how many of how many megabytes are done;
	// it may be nil.
	Progress func(label string, done, total int)
	Limits   Limits
}

// Owner is who the files of a layer belong to: with Chown the given ids on disk
// (a sandbox run by root sees layers through an id-mapped mount), otherwise the
// user who unpacks them. The ids in an image never count: a sandbox has one user.
type Owner struct {
	UID, GID int
	Chown    bool
}

// Limits bound what one layer may hold; zero values mean the defaults.
type Limits struct {
	Bytes   int64 // of its tar
	Entries int
	Reserve int64 // bytes that stay free on the disk
}

// The defaults: the largest images in use (CUDA, ROCm) have layers of about
// 10 GB with some 100,000 files.
const (
	defaultBytes   = 64 << 30
	defaultEntries = 4_000_000
	defaultReserve = 512 << 20
)

// parallel is how many layers are fetched and unpacked at once.
const parallel = 3

// Image looks an image up and unpacks its missing layers. A registry is asked
// once for a name; its answer counts until fresh asks again. The source's path is
// absolute (Source.Locate).
func (s Store) Image(ctx context.Context, source Source, fresh bool) (sandbox.Image, error) {
	known, ok := s.recall(source)
	if ok && !fresh && s.whole(known) {
		for _, id := range known.Layers {
			s.used([]string{s.layerDir(id)})
		}
		return known, nil
	}
	f, err := look(ctx, source)
	if err != nil {
		return sandbox.Image{}, err
	}
	f.image.Reference = source.String()
	if err := s.unpack(ctx, f); err != nil {
		return sandbox.Image{}, err
	}
	return f.image, s.remember(source, f.image)
}

// Layers returns the directories of an image that a sandbox was made with,
// topmost first, and unpacks again those that were deleted meanwhile.
func (s Store) Layers(ctx context.Context, image sandbox.Image) ([]string, error) {
	if !s.whole(image) {
		if err := s.restore(ctx, image); err != nil {
			return nil, err
		}
	}
	dirs := make([]string, 0, len(image.Layers))
	for _, id := range slices.Backward(image.Layers) {
		dir := s.layerDir(id)
		if !slices.Contains(dirs, dir) { // twice the same is once, and overlayfs refuses it (ELOOP)
			dirs = append(dirs, dir)
		}
	}
	s.used(dirs)
	return dirs, nil
}

// restore finds exactly the image that is recorded.
func (s Store) restore(ctx context.Context, image sandbox.Image) error {
	source, err := Parse(image.Reference)
	if err != nil {
		return err
	}
	if source.Kind == Registry {
		source.Digest = image.Digest
	}
	f, err := look(ctx, source)
	if err != nil {
		return err
	}
	if !slices.Equal(f.image.Layers, image.Layers) {
		return fault.New(fault.Conflict, "cannot find the image that the sandbox was made with: %s is now %s, it was %s",
			image.Reference, f.image.Digest, image.Digest).WithHint("litterbox create NAME --base BRANCH makes a sandbox with the new one")
	}
	return s.unpack(ctx, f)
}

// look reads the documents of an image.
func look(ctx context.Context, source Source) (found, error) {
	switch source.Kind {
	case Layout:
		dir, name := source.split(source.Path)
		return describe(ctx, layout{dir, name}, source.String())
	case Archive:
		file, name := source.split(source.Path)
		return archive{file, name}.describe(ctx)
	case Registry:
		return describe(ctx, newRegistry(source), source.String())
	}
	return found{}, fault.New(fault.Internal, "%q is not an image", source)
}

// unpack brings the layers that are missing.
func (s Store) unpack(ctx context.Context, f found) error {
	var total, done atomic.Int64
	var missing []layer
	for _, l := range f.layers {
		twice := slices.ContainsFunc(missing, func(m layer) bool { return m.diffID == l.diffID })
		if !exists(s.layerDir(l.diffID)) && !twice {
			missing = append(missing, l)
			total.Add(l.size)
		}
	}
	label := "unpacking " + f.image.Reference + " (MB)"
	report := func(n int64) {
		// The last step is reported once all layers are in place.
		if now, all := done.Add(n)/1e6, total.Load()/1e6; s.Progress != nil && now < all {
			s.Progress(label, int(now), int(all))
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, l := range missing {
		group.Go(func() error {
			if err := s.layer(groupCtx, l, report); err != nil {
				return fault.Wrap("", err, "cannot unpack %s", f.image.Reference)
			}
			return nil
		})
	}
	err := group.Wait()
	if s.Progress != nil && len(missing) > 0 {
		s.Progress(label, 1, 1)
	}
	return err
}

// partialSuffix ends the name of an incomplete layer.
const partialSuffix = ".partial"

// layer unpacks one layer into its place, unless another process has.
func (s Store) layer(ctx context.Context, l layer, report func(int64)) error {
	dir := s.layerDir(l.diffID)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", filepath.Dir(dir))
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	partial := dir + partialSuffix
	for attempt := 1; ; attempt++ {
		if exists(dir) {
			return nil
		}
		if err := os.RemoveAll(partial); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot remove %q", partial)
		}
		err := s.fill(ctx, l, partial, report)
		if err == nil {
			if err = os.Rename(partial, dir); err != nil {
				err = fault.Wrap(fault.Unavailable, err, "cannot finish %q", dir)
			}
		}
		if err == nil {
			return nil
		}
		err = errors.Join(err, os.RemoveAll(partial))
		// A broken connection is worth another try; a wrong layer is not.
		var broken *errStream
		if attempt == tries || ctx.Err() != nil || !errors.As(err, &broken) {
			return err
		}
		if pauseErr := pause(ctx, attempt); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}

// errStream is a layer whose stream broke off.
type errStream struct{ error }

func (e *errStream) Unwrap() error { return e.error }

// fill unpacks a layer into a new directory, verifies it and flushes it: after a
// power loss no layer may have truncated files.
func (s Store) fill(ctx context.Context, l layer, dir string, report func(int64)) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", dir)
	}
	stream, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	counted := &counter{r: io.LimitReader(stream, max(l.size, 0)), ctx: ctx, report: report}
	plain, end, err := decompress(counted)
	if err != nil {
		return err
	}
	hashed := &hashing{r: plain, hash: sha256.New(), left: s.Limits.bytes()}
	err = extract(ctx, hashed, dir, s.Owner, s.Limits)
	if err == nil {
		_, err = io.Copy(io.Discard, hashed) // padding after the archive counts too
	}
	if err = errors.Join(err, end()); err != nil {
		if counted.err != nil && !errors.Is(counted.err, io.EOF) {
			err = &errStream{err}
		}
		return err
	}
	if got := "sha256:" + hex.EncodeToString(hashed.hash.Sum(nil)); got != l.diffID {
		return fault.New(fault.Denied, "a layer has digest %s, and the image says %s", got, l.diffID)
	}
	if err := flush(dir); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot flush %q", dir)
	}
	return nil
}

func (s Store) layerDir(diffID string) string {
	name := strings.TrimPrefix(diffID, "sha256:")
	if s.Owner.Chown {
		name = fmt.Sprintf("%s-%d", name, s.Owner.UID)
	}
	return filepath.Join(s.Dir, "layers", name)
}

// whole reports whether every layer of an image is unpacked.
func (s Store) whole(image sandbox.Image) bool {
	return !slices.ContainsFunc(image.Layers, func(id string) bool {
		return checkDigest(id) != nil || !exists(s.layerDir(id))
	})
}
