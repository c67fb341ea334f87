package branch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Opening, reading and hashing take most of the time of a commit of many small
// files, so several are read ahead of the walk, each by a goroutine of its own.
// Everything else stays with the walk, in its order: what is decided about a file
// before it is read, and what comes of it afterwards. A file that needs more than
// reading (a conversion, a look at its holes, a copy of its own) is left to it, too.
const (
	aheadFiles = 64        // that are read ahead at most
	aheadSize  = 256 << 10 // bytes of one such file: 16 MiB of all of them
	aheadAfter = 4         // paths: fewer are not worth it
)

// errInTurn means that a file is to be read by the walk itself.
var errInTurn = errors.New("it cannot be read ahead")

// ahead are the files that are read ahead of the walk, in its order.
type ahead struct {
	queue []*upcoming
	jobs  chan *upcoming // nil until the first one
	work  sync.WaitGroup
}

// upcoming is one of them.
type upcoming struct {
	dir        *directory
	name, path string
	kind       layer.Kind

	ready   chan struct{} // closed when what follows is set
	now     layer.File
	content []byte
	err     error
}

// readAhead has a regular file read, if it may be. It finishes older ones.
func (w *walker) readAhead(ctx context.Context, d *directory, name, path string, kind layer.Kind) (bool, error) {
	if w.entries < aheadAfter || w.converts(d, path) {
		return false, nil
	}
	if _, may := d.written.(workspace.Concurrent); !may {
		return false, nil
	}
	if w.ahead.jobs == nil {
		jobs := make(chan *upcoming, aheadFiles)
		w.ahead.jobs = jobs
		for range min(2*runtime.GOMAXPROCS(0), 8) {
			w.ahead.work.Go(func() {
				for u := range jobs {
					u.now, u.content, u.err = w.readSmall(ctx, u)
					close(u.ready)
				}
			})
		}
	}
	if len(w.ahead.queue) == aheadFiles {
		if err := w.finishNext(ctx); err != nil {
			return false, err
		}
	}
	u := &upcoming{dir: d, name: name, path: path, kind: kind, ready: make(chan struct{})}
	d.users++
	w.ahead.queue = append(w.ahead.queue, u)
	w.ahead.jobs <- u
	return true, nil
}

// readSmall is [scan.regular] for a file that only has to be read. Several
// goroutines call it at once: it changes nothing of the scan.
func (s *scan) readSmall(ctx context.Context, u *upcoming) (layer.File, []byte, error) {
	f, err := u.dir.written.File(u.name)
	if err != nil {
		return layer.File{}, nil, err
	}
	defer f.Close()
	before := f.Entry()
	if before.Size > min(aheadSize, s.limits.FileSize) || before.Size-before.Held > page {
		return layer.File{}, nil, errInTurn
	}
	content, err := whole(io.LimitReader(contextReader{ctx, f}, before.Size))
	if err != nil {
		return layer.File{}, nil, err
	}
	now := s.fileOf(before)
	now.Oid = s.hash(content)
	return s.stillSame(now, f), content, nil
}

// finishNext waits for the file that comes first, and records what it is.
func (w *walker) finishNext(ctx context.Context) error {
	u := w.ahead.queue[0]
	w.ahead.queue = w.ahead.queue[1:]
	defer u.dir.leave()
	<-u.ready
	now, err := u.now, u.err
	switch {
	case errors.Is(err, errInTurn):
		return w.inTurn(ctx, u.dir, u.name, u.path, u.kind)
	case err == nil && w.old.files[u.path].Oid != now.Oid:
		err = w.take(int64(len(u.content)), bytes.NewReader(u.content))
	}
	return w.settle(u.path, u.kind, now, err)
}

// finishAll does so for all that are being read ahead. It comes before every note
// about another path: notes stand in the order of the walk.
func (w *walker) finishAll(ctx context.Context) error {
	for len(w.ahead.queue) > 0 {
		if err := w.finishNext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stopAhead ends the readers; nothing comes of what they still have.
func (w *walker) stopAhead() {
	if w.ahead.jobs != nil {
		close(w.ahead.jobs)
	}
	w.ahead.work.Wait()
	for _, u := range w.ahead.queue {
		u.dir.leave()
	}
}

// hash returns the raw object id of a blob.
func (s *scan) hash(content []byte) string {
	h := git.NewHash(s.format)
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return string(h.Sum(nil))
}
