//go:build linux

package remote_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/outpost/station"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// severed is a machine whose link breaks once, after a number of frames written
// by both ends: each is one write.
type severed struct {
	root  string
	lends string // the directory of all state, with keepers that lend their links; empty: none do

	mu     sync.Mutex
	frames int             // that still cross; below zero: all
	broken <-chan struct{} // of the link that broke: it is closed when the driver knows
}

func (*severed) Name() string                 { return "severed" }
func (*severed) Ensure(context.Context) error { return nil }

// Relays implements remote.Relayed.
func (s *severed) Relays() (root, outpost string) { return s.lends, "one" }

func (s *severed) Dial(context.Context) (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	answering := &station.Station{Root: s.root, Driver: keeping{}}
	known := make(chan struct{})
	go func() { _ = answering.Serve(severing{there, s, known}) }()
	return &noticed{severing: severing{here, s, known}}, nil
}

// breakAfter makes the existing link break, or the next one.
func (s *severed) breakAfter(frames int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames, s.broken = frames, nil
}

// breakNoMore reports whether a link has broken. The driver knows of it then: the
// end of a link may come after the answer that it carried last.
func (s *severed) breakNoMore() bool {
	s.mu.Lock()
	broken := s.broken
	s.frames, s.broken = -1, nil
	s.mu.Unlock()
	if broken != nil {
		<-broken
	}
	return broken != nil
}

type severing struct {
	net.Conn
	of    *severed
	known chan struct{}
}

func (c severing) Write(p []byte) (int, error) {
	c.of.mu.Lock()
	over := c.of.frames == 0
	if c.of.frames >= 0 {
		c.of.frames-- // the next one crosses again, on another link
	}
	if over {
		c.of.broken = c.known
	}
	c.of.mu.Unlock()
	if over {
		return 0, errors.Join(io.ErrClosedPipe, c.Conn.Close())
	}
	return c.Conn.Write(p)
}

// noticed is the driver's end of a link, which it closes when it knows that the
// link has ended.
type noticed struct {
	severing
	once sync.Once
}

func (c *noticed) Close() error {
	err := c.severing.Close()
	c.once.Do(func() { close(c.known) })
	return err
}

// keeping is placeless with snapshots that are names.
type keeping struct{ placeless }

func (keeping) Snapshot(_ context.Context, lease driver.Lease, label string) (driver.Snapshot, error) {
	return driver.Snapshot{ID: "one", Label: label}, os.WriteFile(filepath.Join(lease.StateDir, "kept"), []byte(label), 0o600)
}

func (keeping) Snapshots(_ context.Context, lease driver.Lease) ([]driver.Snapshot, error) {
	label, err := os.ReadFile(filepath.Join(lease.StateDir, "kept"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return []driver.Snapshot{{ID: "one", Label: string(label)}}, err
}

// cutTrial is a sandbox with some files on a machine of that kind.
type cutTrial struct {
	machine *severed
	driver  *remote.Driver
	spec    driver.Spec
	lease   driver.Lease
	layer   []byte
}

func newCutTrial(t *testing.T) *cutTrial {
	t.Helper()
	dir := t.TempDir()
	c := &cutTrial{machine: &severed{root: filepath.Join(dir, "machine"), frames: -1}, layer: make([]byte, 150<<10)}
	_, _ = rand.Read(c.layer) // never fails, crypto/rand
	files := map[string][]byte{"layer/big": c.layer, "sandboxes/box/upper/.git/HEAD": []byte("ref: refs/heads/x\n"), "sandboxes/box/home/.note": []byte("mine")}
	for n := range 40 {
		files[fmt.Sprintf("sandboxes/box/upper/dir-%d/file", n%7)+fmt.Sprint(n)] = bytes.Repeat([]byte{byte(n)}, 3000)
	}
	for name, content := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(c.machine.root, 0o755); err != nil {
		t.Fatal(err)
	}
	c.spec = driver.Spec{SandboxID: "box", StateDir: filepath.Join(dir, "sandboxes", "box"), Workspace: driver.Workspace{
		Path: "/work", Layers: []string{filepath.Join(dir, "layer")}, Upper: filepath.Join(dir, "sandboxes", "box", "upper"),
	}}
	c.driver = remote.New("severed", sandbox.Traits{Files: sandbox.FilesCarried}, func(string) remote.Machine { return c.machine })
	c.lease = driver.Lease{ID: "box", SandboxID: "box", StateDir: c.spec.StateDir}
	return c
}

// listing is all that the machine says about the changes.
func (c *cutTrial) listing(ctx context.Context) ([]byte, error) {
	stream, err := c.driver.Files(c.lease).(driver.PruningFiles).ListBut(ctx, false, nil)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(stream)
	return data, errors.Join(err, stream.Close())
}

// The link breaks at every frame of a create, of a commit's listing and contents,
// of a snapshot and of a deletion, in turn: a request fails or is carried out
// whole, and repeated it is carried out, once. LITTERBOX_TEST_LONG tries each
// frame (make test-cuts), and otherwise each seventh is.
func TestACutAtEveryFrameLosesNothing(t *testing.T) {
	step := 7
	if os.Getenv("LITTERBOX_TEST_LONG") != "" {
		step = 1
	}
	steps := []struct {
		name string
		do   func(t *testing.T, c *cutTrial) error
	}{
		{"create", func(t *testing.T, c *cutTrial) error {
			lease, err := c.driver.Acquire(t.Context(), c.spec)
			if err == nil {
				lease.StateDir, c.lease = c.spec.StateDir, lease
			}
			return err
		}},
		{"commit", func(t *testing.T, c *cutTrial) error {
			got, err := c.listing(t.Context())
			if err == nil && bytes.Count(got, []byte("file")) != 40 {
				t.Errorf("a listing without an error has %d of 40 files", bytes.Count(got, []byte("file")))
			}
			return err
		}},
		{"content", func(t *testing.T, c *cutTrial) error {
			stream, err := c.driver.Files(c.lease).Content(t.Context(), "dir-1/file1")
			if err != nil {
				return err
			}
			got, err := io.ReadAll(stream)
			if err == nil && !bytes.Contains(got, bytes.Repeat([]byte{1}, 3000)) {
				t.Errorf("content without an error has %d bytes", len(got))
			}
			return errors.Join(err, stream.Close())
		}},
		{"snapshot", func(t *testing.T, c *cutTrial) error {
			_, err := c.driver.Snapshot(t.Context(), c.lease, "label")
			return err
		}},
		{"forget", func(t *testing.T, c *cutTrial) error { return c.driver.Forget(t.Context(), c.lease) }},
	}
	for at, cut := range steps {
		t.Run(cut.name, func(t *testing.T) {
			for frames := 0; ; frames += step {
				c := newCutTrial(t)
				for _, before := range steps[:at] {
					if err := before.do(t, c); err != nil {
						t.Fatalf("%s without a cut: %v", before.name, err)
					}
				}
				c.machine.breakAfter(frames)
				err := cut.do(t, c) // fails, or recovers by itself
				broke := c.machine.breakNoMore()
				if again := cut.do(t, c); again != nil {
					t.Errorf("cut behind %d frames (%v), and asked again: %v", frames, err, again)
				}
				c.holds(t, cut.name)
				if !broke {
					if frames == 0 {
						t.Fatal("nothing was cut")
					}
					return
				}
			}
		})
	}
}

// holds compares what the machine has in the end.
func (c *cutTrial) holds(t *testing.T, after string) {
	t.Helper()
	if after == "forget" {
		if left, err := os.ReadDir(filepath.Join(c.machine.root, "sandboxes")); err != nil || len(left) != 0 {
			t.Errorf("what was forgotten is still there: %v, %v", left, err)
		}
		return
	}
	found, err := filepath.Glob(filepath.Join(c.machine.root, "layers", "*", "files", "big"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the layer is there %d times: %v", len(found), err)
	}
	if got, err := os.ReadFile(found[0]); err != nil || !bytes.Equal(got, c.layer) {
		t.Errorf("the layer has %d bytes that are others: %v", len(got), err)
	}
	if got, err := os.ReadFile(filepath.Join(c.machine.root, "sandboxes", "box", "home", ".note")); err != nil || string(got) != "mine" {
		t.Errorf("what the sandbox began with is %q: %v", got, err)
	}
	if got, err := c.listing(t.Context()); err != nil || bytes.Count(got, []byte("file")) != 40 {
		t.Errorf("%d of 40 files are listed: %v", bytes.Count(got, []byte("file")), err)
	}
}

// A name is bytes, but a request is JSON.
func TestFilesOfAnyNameAreAskedFor(t *testing.T) {
	c := newCutTrial(t)
	name := "caf\xe9 \"\\\n"
	if err := os.WriteFile(filepath.Join(c.spec.Workspace.Upper, name), []byte("black"), 0o644); err != nil {
		t.Fatal(err)
	}
	lease, err := c.driver.Acquire(t.Context(), c.spec)
	if err != nil {
		t.Fatal(err)
	}
	lease.StateDir = c.spec.StateDir
	stream, err := c.driver.Files(lease).Content(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if got, err := io.ReadAll(stream); err != nil || !bytes.Contains(got, []byte("black")) {
		t.Errorf("it holds %q: %v", got, err)
	}
}
