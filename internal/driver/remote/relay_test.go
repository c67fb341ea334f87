//go:build linux

package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/outpost/station"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// lending is a machine whose keepers lend their links. Each dial counts, and may
// break with break.
type lending struct {
	root, program string
	dials         int
	conns         []net.Conn
	slow          chan struct{} // when not nil, questions about metrics wait for it
	mute          *atomic.Bool  // of the link that was made last: nothing more comes over it
}

// muted is the driver's end of a link that may fall silent.
type muted struct {
	net.Conn
	mute *atomic.Bool
	over chan struct{}
	once *sync.Once
}

func (m muted) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if m.mute.Load() {
		<-m.over
	}
	return n, err
}

func (m muted) Close() error {
	m.once.Do(func() { close(m.over) })
	return m.Conn.Close()
}

func (*lending) Name() string                     { return "lending" }
func (*lending) Ensure(context.Context) error     { return nil }
func (l *lending) Relays() (root, outpost string) { return l.root, l.program }
func (l *lending) Dial(context.Context) (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	l.dials++
	l.conns = append(l.conns, here)
	answering := &station.Station{Root: filepath.Join(l.root, "machine"), Driver: waiting{slow: l.slow}}
	go func() { _ = answering.Serve(there) }()
	l.mute = new(atomic.Bool)
	return muted{here, l.mute, make(chan struct{}), &sync.Once{}}, nil
}

// waiting is keeping with metrics that take their time.
type waiting struct {
	keeping
	slow chan struct{}
}

func (w waiting) CollectMetrics(ctx context.Context, _ driver.Lease) (driver.Metrics, error) {
	if w.slow != nil {
		select {
		case <-w.slow:
		case <-ctx.Done():
		}
	}
	return driver.Metrics{Processes: 7}, nil
}

// lender is a keeper's driver and a command's, with one sandbox that runs.
type lender struct {
	machine      *lending
	keeper, mine *remote.Driver
	lease        driver.Lease
	relay        io.Closer
}

func newLender(t *testing.T) *lender {
	t.Helper()
	root := t.TempDir()
	l := &lender{machine: &lending{root: root, program: "one"}}
	state := filepath.Join(root, "sandboxes", "box")
	for name, content := range map[string]string{
		"layer/base": "base", "sandboxes/box/upper/changed": "changed", "sandboxes/box/upper/.git/HEAD": "ref: refs/heads/x\n", "sandboxes/box/home/.note": "mine",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "machine"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.keeper, l.mine = l.driver(), l.driver()
	var err error
	if l.relay, err = l.keeper.Relay(state); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.relay.Close() })
	l.lease, err = l.keeper.Acquire(t.Context(), driver.Spec{SandboxID: "box", StateDir: state, Workspace: driver.Workspace{
		Path: "/work", Layers: []string{filepath.Join(root, "layer")}, Upper: filepath.Join(state, "upper"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	l.lease.StateDir = state
	l.machine.dials = 0
	return l
}

func (l *lender) driver() *remote.Driver {
	return remote.New("lending", sandbox.Traits{Files: sandbox.FilesCarried}, func(string) remote.Machine { return l.machine })
}

// asks asks all that a commit does.
func (l *lender) asks(t *testing.T, d *remote.Driver) {
	t.Helper()
	files := d.Files(l.lease)
	list, err := files.(driver.PruningFiles).ListBut(t.Context(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := io.ReadAll(list)
	if err = errors.Join(err, list.Close()); err != nil || !bytes.Contains(listed, []byte("changed")) {
		t.Fatalf("the listing is %q: %v", listed, err)
	}
	content, err := files.Content(t.Context(), "changed")
	if err != nil {
		t.Fatal(err)
	}
	read, err := io.ReadAll(content)
	if err = errors.Join(err, content.Close()); err != nil || !bytes.Contains(read, []byte("changed")) {
		t.Fatalf("the content is %q: %v", read, err)
	}
	if _, err := files.Refs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := d.CollectMetrics(t.Context(), l.lease); err != nil || m.Processes != 7 {
		t.Fatalf("the metrics are %v: %v", m, err)
	}
}

func (l *lender) socket() string { return filepath.Join(l.lease.StateDir, "relay.sock") }

// What a command asks goes over the link of the sandbox's keeper, or of any keeper with
// a sandbox in the same machine. What changes something does not.
func TestQuestionsGoOverTheKeepersLink(t *testing.T) {
	l := newLender(t)
	l.asks(t, l.mine)
	if l.machine.dials != 0 {
		t.Errorf("the machine was dialled %d times for questions", l.machine.dials)
	}
	info, err := os.Stat(l.socket())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v: %v", info.Mode(), err)
	}
	other := l.lease
	other.SandboxID, other.StateDir = "other", filepath.Join(l.machine.root, "sandboxes", "other")
	if _, err := l.driver().CollectMetrics(t.Context(), other); err != nil || l.machine.dials != 0 {
		t.Errorf("a question about another sandbox dialled %d times: %v", l.machine.dials, err)
	}
	if err := l.mine.Forget(t.Context(), l.lease); err != nil || l.machine.dials != 1 {
		t.Errorf("the machine was dialled %d times for a change: %v", l.machine.dials, err)
	}
}

// A link that is not there, or cannot be used, costs a dial and nothing else.
func TestACommandDialsWhereNothingIsLent(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, l *lender){
		"the keeper has ended": func(t *testing.T, l *lender) {
			if err := l.relay.Close(); err != nil {
				t.Fatal(err)
			}
		},
		"a file in place of the socket": func(t *testing.T, l *lender) {
			if err := errors.Join(os.Remove(l.socket()), os.WriteFile(l.socket(), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
		"the keeper is stopped": func(t *testing.T, l *lender) { // SIGSTOP
			if err := os.Remove(l.socket()); err != nil {
				t.Fatal(err)
			}
			err := process.ShortPath(filepath.Dir(l.socket()), func(short string) error {
				deaf, err := net.Listen("unix", filepath.Join(short, filepath.Base(l.socket())))
				if err == nil {
					t.Cleanup(func() { _ = deaf.Close() })
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		},
		"the keeper's link is cut": func(t *testing.T, l *lender) {
			for _, conn := range l.machine.conns {
				_ = conn.Close()
			}
		},
		"the keeper has another outpost": func(_ *testing.T, l *lender) { l.machine.program = "two" },
		"its files are in another machine": func(t *testing.T, l *lender) {
			if err := os.Rename(filepath.Join(l.lease.StateDir, remote.File), filepath.Join(l.machine.root, "elsewhere")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLender(t)
			spoil(t, l)
			began := time.Now()
			if m, err := l.mine.CollectMetrics(t.Context(), l.lease); err != nil || m.Processes != 7 {
				t.Errorf("the metrics are %v: %v", m, err)
			}
			if l.machine.dials != 1 || time.Since(began) > 10*time.Second {
				t.Errorf("the machine was dialled %d times, within %v", l.machine.dials, time.Since(began))
			}
		})
	}
}

// A question over a link that has silently died is asked again over another one, and the
// link is lent no more.
func TestASilentLinkIsNotLent(t *testing.T) {
	t.Parallel()
	l := newLender(t)
	l.machine.mute.Store(true)
	for dials := range 2 {
		began := time.Now()
		if m, err := l.driver().CollectMetrics(t.Context(), l.lease); err != nil || m.Processes != 7 || l.machine.dials != dials+1 {
			t.Errorf("question %d, after %d dials: %v, %v", dials, l.machine.dials, m, err)
		}
		if dials > 0 && time.Since(began) > 5*time.Second {
			t.Errorf("the next question waited %v for the same link", time.Since(began))
		}
	}
}

// A keeper that ends answers what is under way first; one that is killed, and one
// whose link is cut, leaves a question that is asked again.
func TestQuestionsOutliveTheKeeper(t *testing.T) {
	for name, end := range map[string]struct {
		do    func(l *lender)
		dials int
	}{
		"in order": {func(l *lender) {
			go func() {
				time.Sleep(100 * time.Millisecond)
				close(l.machine.slow)
			}()
			_ = l.relay.Close()
		}, 0},
		"with its link": {func(l *lender) {
			conns := l.machine.conns
			close(l.machine.slow) // for the next link
			for _, conn := range conns {
				_ = conn.Close()
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLenderSlow(t)
			answered := make(chan error, 1)
			go func() {
				_, err := l.mine.CollectMetrics(t.Context(), l.lease)
				answered <- err
			}()
			time.Sleep(200 * time.Millisecond) // it is under way
			end.do(l)
			if err := <-answered; err != nil {
				t.Error(err)
			}
			if l.machine.dials > end.dials {
				t.Errorf("the machine was dialled %d times", l.machine.dials)
			}
		})
	}
}

func newLenderSlow(t *testing.T) *lender {
	l := newLender(t)
	l.machine.slow = make(chan struct{})
	for _, conn := range l.machine.conns {
		_ = conn.Close()
	}
	l.keeper.Hangup(l.lease.StateDir)
	if _, _, err := l.keeper.Files(l.lease).Size(t.Context()); err != nil { // over a link to a slow machine
		t.Fatal(err)
	}
	l.machine.dials = 0
	return l
}

// A borrower is not trusted with more than questions: whatever it sends, the keeper
// goes on, and no operation that changes something reaches the machine.
func TestABorrowerOnlyAsks(t *testing.T) {
	l := newLender(t)
	var conn net.Conn
	err := process.ShortPath(filepath.Dir(l.socket()), func(short string) (err error) {
		conn, err = net.Dial("unix", filepath.Join(short, filepath.Base(l.socket())))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 1)
	if _, err := conn.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, said); err != nil || said[0] != '+' {
		t.Fatalf("the keeper says %q: %v", said, err)
	}
	link := outpost.Dialled(conn)
	for _, op := range []outpost.Op{outpost.OpForget, outpost.OpDestroy, outpost.OpAcquire, outpost.OpDial, outpost.OpMeet, outpost.OpSend, "unheard of"} {
		stream, err := link.Open()
		if err != nil {
			t.Fatal(err)
		}
		var answer outpost.Answer
		if err := outpost.WriteMessage(stream, outpost.Request{Op: op, Place: outpost.Place{Sandbox: "box"}}); err != nil {
			t.Fatal(err)
		}
		if err := outpost.ReadMessage(stream, &answer); err == nil {
			t.Errorf("%s was answered with %+v", op, answer)
		}
		_ = stream.Close()
	}
	if _, err := os.Stat(filepath.Join(l.machine.root, "machine", "sandboxes", "box")); err != nil {
		t.Error(err)
	}
	l.asks(t, l.mine)
}

// The link of a keeper breaks at every frame of what another process asks over it: a
// listing is asked for again by itself, and is whole. LITTERBOX_TEST_LONG tries each
// frame, and otherwise each third is.
func TestACutUnderABorrowerLosesNothing(t *testing.T) {
	step := 3
	if os.Getenv("LITTERBOX_TEST_LONG") != "" {
		step = 1
	}
	for frames := 0; ; frames += step {
		c := newCutTrial(t)
		c.machine.lends = filepath.Dir(filepath.Dir(c.spec.StateDir))
		relay, err := c.driver.Relay(c.spec.StateDir)
		if err != nil {
			t.Fatal(err)
		}
		lease, err := c.driver.Acquire(t.Context(), c.spec)
		if err != nil {
			t.Fatal(err)
		}
		lease.StateDir = c.spec.StateDir
		c.lease, c.driver = lease, remote.New("severed", sandbox.Traits{Files: sandbox.FilesCarried}, func(string) remote.Machine { return c.machine })
		c.machine.breakAfter(frames)
		for attempt := range 2 {
			got, err := c.listing(t.Context())
			if err != nil || bytes.Count(got, []byte("file")) != 40 {
				t.Errorf("cut behind %d frames, attempt %d: the listing has %d of 40 files: %v", frames, attempt, bytes.Count(got, []byte("file")), err)
			}
		}
		broke := c.machine.breakNoMore()
		c.holds(t, "commit")
		if err := relay.Close(); err != nil {
			t.Error(err)
		}
		if !broke {
			if frames == 0 {
				t.Fatal("nothing was cut")
			}
			return
		}
	}
}
