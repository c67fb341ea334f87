//go:build linux

package remote_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/outpost/station"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// flaky is a machine with an outpost in this process, whose connections break.
type flaky struct {
	root string

	mu   sync.Mutex
	cuts []int // after how many bytes each connection to it breaks; the others do not
	sent int   // bytes to it
}

// received returns how many bytes were sent to it so far.
func (f *flaky) received() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

func (f *flaky) Name() string                 { return "flaky" }
func (f *flaky) Ensure(context.Context) error { return nil }

func (f *flaky) Dial(context.Context) (io.ReadWriteCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	here, there := net.Pipe()
	s := &station.Station{Root: f.root, Driver: placeless{}}
	go func() { _ = s.Serve(there) }()
	conn := &breaking{Conn: here, of: f, left: -1}
	if len(f.cuts) > 0 {
		conn.left, f.cuts = f.cuts[0], f.cuts[1:]
	}
	return conn, nil
}

type breaking struct {
	net.Conn
	of   *flaky
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	b.of.mu.Lock()
	if b.left >= 0 && b.left < len(p) {
		p = p[:b.left]
	}
	b.of.mu.Unlock()
	n, err := b.Conn.Write(p)
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.sent += n
	if b.left >= 0 {
		if b.left -= n; b.left <= 0 {
			return n, errors.Join(err, io.ErrClosedPipe, b.Conn.Close())
		}
	}
	return n, err
}

// placeless makes places that are only files.
type placeless struct{ driver.Driver }

func (placeless) Ownership(string) driver.Ownership {
	return driver.Ownership{UpperUID: -1, UpperGID: -1}
}

func (placeless) Acquire(_ context.Context, spec driver.Spec) (driver.Lease, error) {
	return driver.Lease{ID: spec.SandboxID, SandboxID: spec.SandboxID, Handle: []byte("{}")}, nil
}

func (placeless) Destroy(context.Context, driver.Lease, bool) error { return nil }

// newFlaky returns a driver of one of those machines, and the spec of a place.
func newFlaky(t *testing.T, layer []byte, cuts ...int) (*remote.Driver, *flaky, driver.Spec) {
	t.Helper()
	dir := t.TempDir()
	f := &flaky{root: filepath.Join(dir, "machine"), cuts: cuts}
	for _, made := range []string{f.root, filepath.Join(dir, "layer"), filepath.Join(dir, "state", "upper", ".git"), filepath.Join(dir, "state", "home")} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{"layer/big": layer, "layer/small": []byte("small"), "state/upper/.git/HEAD": []byte("ref: refs/heads/x\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec := driver.Spec{SandboxID: "box", StateDir: filepath.Join(dir, "state"), Workspace: driver.Workspace{
		Path: "/work", Layers: []string{filepath.Join(dir, "layer")}, Upper: filepath.Join(dir, "state", "upper"),
	}}
	d := remote.New("flaky", sandbox.Traits{Files: sandbox.FilesCarried}, func(string) remote.Machine { return f })
	return d, f, spec
}

// A transfer that is cut again and again resumes where it was; only data under
// way is sent twice, and the data that arrives is the data sent.
func TestTransferGoesOnAfterCuts(t *testing.T) {
	layer := make([]byte, 3<<20)
	_, _ = rand.Read(layer) // never fails, crypto/rand
	d, f, spec := newFlaky(t, layer, 100, 300_000, 400_000, 20, 900_000, 500_000)
	if _, err := d.Acquire(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(f.root, "layers", "*", "files", "big"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	if got, err := os.ReadFile(found[0]); err != nil || !bytes.Equal(got, layer) {
		t.Errorf("something else arrived: %d bytes, %v", len(got), err)
	}
	// Each cut may lose the content of its link's buffers.
	before := f.received()
	if most := len(layer) + 6*(256<<10); before > most {
		t.Errorf("%d bytes were sent for %d", before, len(layer))
	}
	spec.SandboxID = "second"
	if err := os.Remove(filepath.Join(spec.StateDir, remote.File)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if sent := f.received() - before; sent > 64<<10 {
		t.Errorf("a second place on the same layer sent %d bytes", sent)
	}
}

// A machine's files of a sandbox only count under the identity that they began
// with. One that was made again does not begin again, and its empty directories
// are not a sandbox that removed everything.
func TestFilesOfAnotherIdentity(t *testing.T) {
	d, f, spec := newFlaky(t, []byte("x"))
	lease, err := d.Acquire(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	lease.StateDir = spec.StateDir
	if stream, err := d.Files(lease).List(t.Context()); err != nil {
		t.Fatal(err) // the control
	} else if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		if _, err := d.Acquire(t.Context(), spec); !errors.Is(err, outpost.ErrOtherFiles) {
			t.Errorf("%s: Acquire: %v", what, err)
		}
		_, err := d.Files(lease).List(t.Context())
		_, _, size := d.Files(lease).Size(t.Context())
		_, refs := d.Files(lease).Refs(t.Context())
		for _, err := range []error{err, size, refs} {
			if !errors.Is(err, outpost.ErrOtherFiles) {
				t.Errorf("%s: it answers: %v", what, err)
			}
		}
	}
	box := filepath.Join(f.root, "sandboxes", "box")
	if err := os.Rename(box, box+"-away"); err != nil {
		t.Fatal(err)
	}
	refused("without the files")
	if err := os.MkdirAll(filepath.Join(box, "upper"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(box, "place.json"), []byte(`{"version":1,"identity":"another"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("with empty ones")
	// Forgetting only touches its own files.
	if err := d.Forget(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(box); err != nil {
		t.Errorf("another's files are gone: %v", err)
	}
	if err := errors.Join(os.RemoveAll(box), os.Rename(box+"-away", box)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), spec); err != nil {
		t.Errorf("with its own again: %v", err)
	}
	if err := d.Forget(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(f.root, "sandboxes")); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == "box" }) {
		t.Errorf("it was not forgotten: %v, %v", left, err)
	}
}

// Files left half built by a kill in the machine, and those cut off and never
// asked for again, go with a later deletion; young ones stay.
func TestWhatWasBegunGoes(t *testing.T) {
	d, f, spec := newFlaky(t, []byte("x"))
	lease, err := d.Acquire(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	lease.StateDir = spec.StateDir
	long := time.Now().Add(-30 * 24 * time.Hour)
	at := func(name string) string { return filepath.Join(f.root, name) }
	cut := "incoming/" + strings.Repeat("a", 64)
	for _, name := range []string{"sandboxes/.partial-old", "layers/.partial-old", cut, "sandboxes/.partial-new", "layers/.partial-new"} {
		made := os.MkdirAll(at(name), 0o755)
		if name == cut {
			made = errors.Join(os.Remove(at(name)), os.WriteFile(at(name), []byte("half"), 0o600))
		}
		if !strings.HasSuffix(name, "new") {
			made = errors.Join(made, os.Chtimes(at(name), long, long))
		}
		if made != nil {
			t.Fatal(made)
		}
	}
	if err := d.Forget(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		"sandboxes/.partial-old": false, "layers/.partial-old": false, cut: false, "sandboxes/.partial-new": true, "layers/.partial-new": true,
	} {
		if _, err := os.Lstat(at(name)); (err == nil) != stays {
			t.Errorf("%s is there: %v, want %v", name, err == nil, stays)
		}
	}
}

// Layers go when nothing uses them, and not before.
func TestLayersInUseStay(t *testing.T) {
	d, f, spec := newFlaky(t, []byte("x"))
	lease, err := d.Acquire(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	lease.StateDir = spec.StateDir
	keys, err := os.ReadDir(filepath.Join(f.root, "layers"))
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	key := keys[0].Name()
	drop := func() []string {
		t.Helper()
		conn, err := f.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		link := outpost.Dialled(conn)
		defer link.Close()
		s, err := link.Open()
		if err != nil {
			t.Fatal(err)
		}
		var answer outpost.Answer
		if err := errors.Join(outpost.WriteMessage(s, outpost.Request{Op: outpost.OpDrop, Keys: []string{key}}), outpost.ReadMessage(s, &answer), answer.Failure.Err()); err != nil {
			t.Fatal(err)
		}
		return answer.Missing
	}
	if gone := drop(); len(gone) != 0 {
		t.Errorf("a layer in use was dropped")
	}
	if err := d.Forget(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if gone := drop(); len(gone) != 1 {
		t.Errorf("a layer that nothing stands on stays")
	}
	if left, err := os.ReadDir(filepath.Join(f.root, "layers")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
