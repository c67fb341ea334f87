// Package station is an outpost: it answers the requests of hosts (package
// outpost) in the machine that it runs in. It has a directory of its own there
// and keeps everything in it, so that any number of processes can answer for one
// machine, one after the other or at the same time, and the end of one of them
// ends no place:
//
//	layers/KEY/files      a tree that places use, or a program; never changed
//	incoming/KEY          what came of a tree that was cut off
//	sandboxes/ID          the files of a place, as a driver lays them out
//	sandboxes/ID/place.json
//	frozen/NAME           what places wrote before, for snapshots, forks and goldens
//	goldens/NAME          the record of a golden
//
// It makes places through a driver of this machine, which is handed to it. It
// opens a place's files only through packages hostile and workspace/local. It
// makes no decisions about what a host asks for.
//
// Start reading at [Station.Serve].
package station

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// Station answers for one machine. It is safe for concurrent use.
type Station struct {
	Root   string        // its directory
	Driver driver.Driver // makes the places
	Boot   string        // of the machine: another one has lost every place
	// Durable makes listed files reach the disk first.
	Durable bool
}

// requestPatience bounds how long a host may take for its request.
const requestPatience = 30 * time.Second

// Serve answers on conn until that ends, and returns when nothing on it is under
// way.
func (s *Station) Serve(conn io.ReadWriteCloser) error {
	return outpost.Accepted(conn, s.stream).Wait()
}

// stream answers one request.
func (s *Station) stream(stream *outpost.Stream) {
	_ = stream.SetReadDeadline(time.Now().Add(requestPatience)) // it never fails
	var q outpost.Request
	if err := outpost.ReadMessage(stream, &q); err != nil {
		stream.Abort()
		return
	}
	_ = stream.SetReadDeadline(time.Time{})
	err := s.check(q)
	if err == nil {
		err = s.answer(stream, q)
	}
	if err != nil {
		_ = outpost.WriteMessage(stream, outpost.Answer{Failure: outpost.FailureOf(err)}) // the host is gone otherwise
	}
}

// check refuses invalid names, before one becomes a path.
func (s *Station) check(q outpost.Request) error {
	named := q.Op != outpost.OpStatus && q.Op != outpost.OpMeet && q.Op != outpost.OpUsage && q.Op != outpost.OpPlaces && q.Op != outpost.OpStrays &&
		q.Op != outpost.OpHave && q.Op != outpost.OpSend && q.Op != outpost.OpDrop && q.Op != outpost.OpReadGolden && q.Op != outpost.OpWriteGolden && q.Op != outpost.OpDropGolden
	if named && !outpost.IsName(q.Place.Sandbox) {
		return fault.New(fault.Invalid, "cannot use %q as the name of a sandbox", q.Place.Sandbox)
	}
	if slices.Contains([]outpost.Op{outpost.OpKeepGolden, outpost.OpReadGolden, outpost.OpWriteGolden, outpost.OpDropGolden, outpost.OpBeginWith}, q.Op) && !outpost.IsName(q.To.Identity) {
		return fault.New(fault.Invalid, "cannot use %q as the name of a golden", q.To.Identity)
	}
	if q.On != "" && !outpost.IsKey(q.On) {
		return fault.New(fault.Invalid, "cannot use %q as a key", q.On)
	}
	for _, key := range q.Keys {
		if q.Op != outpost.OpStrays && q.Op != outpost.OpRebranch && !outpost.IsKey(key) {
			return fault.New(fault.Invalid, "cannot use %q as a key", key)
		}
	}
	return nil
}

// answer carries out a request. The host is told the error that it returns.
func (s *Station) answer(stream *outpost.Stream, q outpost.Request) error {
	switch q.Op {
	case outpost.OpSend:
		return s.take(stream, q)
	case outpost.OpBegin:
		return s.begin(stream, q.Place)
	case outpost.OpKeepGolden, outpost.OpReadGolden, outpost.OpWriteGolden, outpost.OpBeginWith:
		return s.goldens(stream, q)
	case outpost.OpDial:
		return s.dial(stream, q)
	case outpost.OpList, outpost.OpBelow, outpost.OpContent:
		return s.list(stream, q)
	}
	// Operations that read no more from the stream end with it.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if q.Patience > 0 {
		ctx, cancel = context.WithTimeout(ctx, q.Patience)
		defer cancel()
	}
	go func() {
		if _, err := io.Copy(io.Discard, stream); err != nil {
			cancel()
		}
	}()
	answer, err := s.simple(ctx, q)
	if err != nil {
		return err
	}
	err = outpost.WriteMessage(stream, answer)
	if err != nil && q.Op == outpost.OpAcquire {
		// Without its answer no host knows of it, and none ever will.
		err = errors.Join(err, s.Driver.Destroy(context.WithoutCancel(ctx), s.lease(outpost.Place{Sandbox: q.Place.Sandbox, Handle: answer.Handle}), true))
	}
	return err
}

// simple carries out the operations with one answer.
func (s *Station) simple(ctx context.Context, q outpost.Request) (outpost.Answer, error) {
	lease := s.lease(q.Place)
	switch q.Op {
	case outpost.OpStatus:
		return s.status()
	case outpost.OpMeet:
		return s.meet(q.Meet), nil
	case outpost.OpHave:
		return outpost.Answer{Missing: s.missing(q.Keys)}, nil
	case outpost.OpDrop:
		gone, err := s.drop(ctx, q.Keys)
		return outpost.Answer{Missing: gone}, err
	case outpost.OpAcquire:
		return s.acquire(ctx, q)
	case outpost.OpAttach:
		return outpost.Answer{}, s.Driver.Attach(ctx, lease)
	case outpost.OpPause:
		return outpost.Answer{}, s.Driver.Pause(ctx, lease, q.Reason)
	case outpost.OpResume:
		return outpost.Answer{}, s.Driver.Resume(ctx, lease)
	case outpost.OpLimit:
		kept, err := s.Driver.Limit(ctx, lease, q.Limits)
		return outpost.Answer{InForce: kept}, err
	case outpost.OpRecover:
		said, err := s.Driver.Recover(ctx, lease)
		return outpost.Answer{Said: said}, err
	case outpost.OpDestroy:
		return outpost.Answer{}, s.Driver.Destroy(ctx, lease, q.Force)
	case outpost.OpMetrics:
		m, err := s.Driver.CollectMetrics(ctx, lease)
		return outpost.Answer{Metrics: &m}, err
	case outpost.OpLend:
		return outpost.Answer{}, s.lend(ctx, q)
	case outpost.OpJoin:
		joiner, can := s.Driver.(driver.Joiner)
		if !can {
			break
		}
		dir, err := joiner.Namespaces(lease)
		return outpost.Answer{Namespaces: dir}, err
	case outpost.OpRefs:
		return s.refs(ctx, q.Place)
	case outpost.OpSize:
		return s.size(ctx, q.Place)
	case outpost.OpForget:
		return outpost.Answer{}, s.forget(ctx, q.Place)
	case outpost.OpPlaces:
		return s.places(ctx)
	case outpost.OpStrays, outpost.OpEnd:
		return s.strays(q)
	case outpost.OpUsage:
		return s.usage()
	case outpost.OpSnapshot, outpost.OpSnapshots, outpost.OpRevert, outpost.OpRelease, outpost.OpFork:
		return s.kept(ctx, q)
	case outpost.OpDropGolden:
		return outpost.Answer{}, s.dropGolden(context.WithoutCancel(ctx), q.To.Identity)
	case outpost.OpRebranch:
		return outpost.Answer{}, s.rebranch(ctx, q)
	}
	return outpost.Answer{}, fault.Wrap("", driver.ErrUnsupported, "the outpost does not know the operation %q", q.Op)
}

// lease is how the driver of this machine knows a place.
func (s *Station) lease(p outpost.Place) driver.Lease {
	return driver.Lease{ID: p.Sandbox, SandboxID: p.Sandbox, StateDir: s.dir(p.Sandbox), Handle: p.Handle}
}

func (s *Station) dir(id string) string { return filepath.Join(s.Root, "sandboxes", id) }

func (s *Station) status() (outpost.Answer, error) {
	status := outpost.Status{Version: outpost.Version, Now: time.Now(), Boot: s.Boot, Capabilities: s.Driver.Capabilities(), Free: -1}
	status.Capabilities.Goldens = status.Capabilities.Fork && status.Capabilities.Snapshots.Freeze
	var st unix.Statfs_t
	if unix.Statfs(s.Root, &st) == nil {
		status.Free, status.Total = int64(st.Bavail)*int64(st.Bsize), int64(st.Blocks)*int64(st.Bsize)
		status.FreeInodes, status.Inodes = st.Ffree, st.Files
	}
	measure(&status)
	return outpost.Answer{Status: &status}, nil
}

// locked runs do while no other process works with the same name.
func (s *Station) locked(ctx context.Context, name string, do func() error) error {
	dir := filepath.Join(s.Root, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return driver.Seal(err, "cannot make the directory of locks")
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return driver.Seal(err, "cannot open a lock")
	}
	defer f.Close()
	if err := lock.File(ctx, f); err != nil {
		return err
	}
	return do()
}
