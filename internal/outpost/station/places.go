package station

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// begin takes the initial files of a place. They are there whole or not at all,
// under the identity that the host gave them.
func (s *Station) begin(stream *outpost.Stream, p outpost.Place) error {
	return s.beginBy(stream, p, func(building string) error {
		if err := s.furnish(stream, building, p.Sandbox); err != nil {
			return err
		}
		return s.settleIn(building, p, record{Identity: p.Identity})
	})
}

// beginBy is begin with the part that makes the files of the place, beside it.
func (s *Station) beginBy(stream *outpost.Stream, p outpost.Place, furnish func(building string) error) error {
	ctx := context.Background()
	if p.Identity == "" {
		return fault.New(fault.Invalid, "cannot make a sandbox without an identity")
	}
	return s.locked(ctx, "place-"+p.Sandbox, func() error {
		free, err := s.free(p)
		if err != nil {
			return err
		}
		if !free {
			return outpost.WriteMessage(stream, outpost.Answer{Offset: -1})
		}
		if err := outpost.WriteMessage(stream, outpost.Answer{}); err != nil {
			return err
		}
		building, err := s.building("sandboxes")
		if err != nil {
			return err
		}
		if err := furnish(building); err != nil {
			return errors.Join(err, hostile.Remove(building))
		}
		return outpost.WriteMessage(stream, outpost.Answer{})
	})
}

// free reports whether a place has no files yet. Files of its identity are its
// own; others are an obstacle.
func (s *Station) free(p outpost.Place) (bool, error) {
	switch r, err := s.read(p.Sandbox); {
	case err == nil && r.Identity == p.Identity:
		return false, nil
	case err == nil:
		return false, outpost.ErrOtherFiles
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	return true, nil
}

func (s *Station) furnish(stream io.Reader, building, sandbox string) error {
	own := s.Driver.Ownership(sandbox)
	err := outpost.ReadTree(context.Background(), stream, building, func(string) (int, int) { return own.UpperUID, own.UpperGID })
	if err != nil {
		return driver.Seal(err, "cannot make the files of the sandbox")
	}
	return nil
}

// settleIn moves the files built beside a place into its directory.
func (s *Station) settleIn(building string, p outpost.Place, r record) error {
	if !r.Whole { // the driver's mark of an overlay, also where it never ran
		if err := os.Mkdir(filepath.Join(building, "work"), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return driver.Seal(err, "cannot make the files of the sandbox")
		}
	}
	if err := s.write(building, r); err != nil {
		return err
	}
	if err := os.Rename(building, s.dir(p.Sandbox)); err != nil {
		return driver.Seal(err, "cannot make the files of the sandbox")
	}
	return nil
}

// acquire makes a place on its files, which must be there.
func (s *Station) acquire(ctx context.Context, q outpost.Request) (answer outpost.Answer, err error) {
	if q.Spec == nil || q.Spec.SandboxID != q.Place.Sandbox {
		return answer, fault.New(fault.Invalid, "cannot make a sandbox without a description")
	}
	err = s.locked(ctx, "place-"+q.Place.Sandbox, func() error {
		r, err := s.its(q.Place)
		if err != nil {
			return err
		}
		spec, err := s.here(*q.Spec, q.Program)
		if err != nil {
			return err
		}
		// Recorded first: a layer is not dropped under a place that comes up.
		r.Layers, r.Whole = slices.Clone(q.Spec.Workspace.Layers), len(q.Spec.Workspace.Layers) == 0
		r.Lent = targets(q.Spec.Lent)
		if q.Program != "" {
			r.Layers = append(r.Layers, q.Program)
		}
		if err := s.write(spec.StateDir, r); err != nil {
			return err
		}
		if spec.Mounts, err = s.lendable(spec.StateDir, q.Spec.Lent); err != nil {
			return err
		}
		lease, err := s.Driver.Acquire(ctx, spec)
		if err != nil {
			return err
		}
		r.Handle = lease.Handle
		answer = outpost.Answer{Handle: lease.Handle, InForce: lease.InForce, Traits: &lease.Traits}
		if err := s.write(spec.StateDir, r); err != nil {
			return errors.Join(err, s.Driver.Destroy(context.WithoutCancel(ctx), lease, true))
		}
		return nil
	})
	return answer, err
}

// here returns a spec with the paths of this machine. Nothing of the host's can
// be in a place.
func (s *Station) here(spec driver.Spec, program string) (driver.Spec, error) {
	if len(spec.Mounts) > 0 || len(spec.Caches) > 0 || spec.Base != nil {
		return spec, fault.Wrap("", driver.ErrUnsupported, "cannot mount what is not in the machine")
	}
	spec.StateDir, spec.Lent = s.dir(spec.SandboxID), nil
	spec.Workspace.Upper, spec.Workspace.Work = filepath.Join(spec.StateDir, "upper"), filepath.Join(spec.StateDir, "work")
	keys := slices.Clone(spec.Workspace.Layers)
	spec.Workspace.Layers = nil
	for _, key := range keys {
		if !outpost.IsKey(key) {
			return spec, fault.New(fault.Invalid, "cannot use %q as a key", key)
		}
		spec.Workspace.Layers = append(spec.Workspace.Layers, s.files(key))
	}
	if program != "" {
		if !outpost.IsKey(program) {
			return spec, fault.New(fault.Invalid, "cannot use %q as a key", program)
		}
		keys = append(keys, program)
		spec.Program = filepath.Join(s.files(program), outpost.ProgramName)
	}
	if missing := s.missing(keys); len(missing) > 0 {
		return spec, fault.Wrap("", driver.ErrLeaseUnavailable, "cannot make the sandbox: %d of its layers are not in the machine", len(missing))
	}
	if own := s.Driver.Ownership(spec.SandboxID); own.ChownLayers {
		spec.User.UID, spec.User.GID = own.UID, own.GID // whose the layers are
	}
	return spec, nil
}

// dial connects the stream with a guest.
func (s *Station) dial(stream *outpost.Stream, q outpost.Request) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestPatience)
	conn, err := s.Driver.Dial(ctx, s.lease(q.Place))
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	if q.Meet != "" && s.handOver(conn, q.Meet) {
		return outpost.WriteMessage(stream, outpost.Answer{Met: true})
	}
	if err := outpost.WriteMessage(stream, outpost.Answer{}); err != nil {
		return err
	}
	var done sync.WaitGroup
	done.Go(func() {
		_, err := io.Copy(conn, stream)
		if half, can := conn.(*net.UnixConn); err == nil && can {
			_ = half.CloseWrite() // the guest may have ended, and still sends data
			return
		}
		conn.Close()
	})
	if _, err := io.Copy(stream, conn); err != nil {
		stream.Abort()
	} else {
		_ = stream.CloseWrite() // a host that is gone reads nothing
	}
	conn.Close()
	stream.Close()
	done.Wait()
	return nil
}

// forget ends a place and removes its files.
func (s *Station) forget(ctx context.Context, p outpost.Place) error {
	return s.locked(ctx, "place-"+p.Sandbox, func() error {
		r, err := s.read(p.Sandbox)
		// An outpost that was killed here may have removed the record before the rest:
		// what is left is no place of anybody's.
		if err == nil && p.Identity != "" && r.Identity != p.Identity {
			return nil // another sandbox's of that name: its own are gone
		}
		if len(r.Handle) > 0 {
			if err := s.Driver.Destroy(ctx, s.lease(outpost.Place{Sandbox: p.Sandbox, Handle: r.Handle}), true); err != nil {
				return err
			}
		}
		if err := hostile.Remove(s.dir(p.Sandbox)); err != nil {
			return driver.Seal(err, "cannot remove the files of the sandbox")
		}
		return errors.Join(s.sweepFrozen(), s.sweep(ctx))
	})
}

// places lists the places that have files here.
func (s *Station) places(ctx context.Context) (outpost.Answer, error) {
	ids, err := s.ids()
	if err != nil {
		return outpost.Answer{}, err
	}
	answer := outpost.Answer{Places: []outpost.Found{}}
	for _, id := range ids {
		found := outpost.Found{Sandbox: id}
		if r, err := s.read(id); err == nil && len(r.Handle) > 0 {
			attached := s.Driver.Attach(ctx, s.lease(outpost.Place{Sandbox: id, Handle: r.Handle}))
			found.Runs = !errors.Is(attached, driver.ErrMachineLost)
		}
		answer.Places = append(answer.Places, found)
	}
	return answer, nil
}

// strays lists what runs here for places that the host does not know, or ends
// the processes of one.
func (s *Station) strays(q outpost.Request) (outpost.Answer, error) {
	finder, can := s.Driver.(driver.StrayFinder)
	if !can {
		return outpost.Answer{}, driver.ErrUnsupported
	}
	known := func(id string) bool { return slices.Contains(q.Keys, id) }
	if q.Op == outpost.OpEnd {
		known = func(id string) bool { return id != q.Place.Sandbox }
	}
	found, err := finder.Strays(s.Root, known)
	answer := outpost.Answer{Places: []outpost.Found{}}
	for _, one := range found {
		if q.Op == outpost.OpEnd {
			err = errors.Join(err, one.End())
			continue
		}
		answer.Places = append(answer.Places, outpost.Found{Sandbox: one.SandboxID, Runs: true, What: one.What})
	}
	return answer, err
}

// usage adds up the files here.
func (s *Station) usage() (outpost.Answer, error) {
	seen := hostile.Counted{}
	return outpost.Answer{Usage: &outpost.Usage{
		Layers: seen.Size(filepath.Join(s.Root, "layers")), Places: seen.Size(filepath.Join(s.Root, "sandboxes")) + seen.Size(s.frozen()),
		Incoming: seen.Size(filepath.Join(s.Root, "incoming")),
	}}, nil
}
