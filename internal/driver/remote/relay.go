package remote

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// A keeper lends its link to other processes of its user, for questions alone: these
// are asked again over another link when the keeper ends. The frames of the borrower
// end in the keeper, so that no borrower delays another one, and the keeper sees
// what is asked. It never dials for a borrower.

// relaySocket is the name of the socket in the directory of the keeper's sandbox.
const relaySocket = "relay.sock"

// relayed reports whether an operation is carried for a borrower: it changes nothing,
// and none of its streams stays.
func relayed(op outpost.Op) bool { return asks(op) && op != outpost.OpDial && op != outpost.OpMeet }

// Bounds of what is lent.
const (
	maxBorrowers  = 64 // at the same time
	maxBorrowed   = 64 // streams of the keeper's link
	lendPatience  = 2 * time.Second
	drainPatience = 10 * time.Second // for questions under way when the keeper ends
	// signPatience is how long the machine may be silent after a question: then its
	// link may be dead, and the borrower finds out by itself.
	signPatience = 10 * time.Second
	// silence is longer than a link that is whole is silent.
	silence = 20 * time.Second
)

// lent is the word that follows a borrower's greeting.
const lent = '+'

// relay is the lending of one keeper.
type relay struct {
	client   *client
	outpost  string
	listener *net.UnixListener
	streams  chan struct{} // one for each that is carried
	silent   atomic.Int64  // when the link was asked for a sign of life that did not come, ns

	mu        sync.Mutex
	borrowers map[*outpost.Link]struct{}
}

// Relay implements driver.Relayer.
func (d *Driver) Relay(stateDir string) (io.Closer, error) {
	d.keeps.Store(true)
	c := d.at(stateDir)
	machine, can := c.machine.(Relayed)
	if !can {
		return nil, nil
	}
	root, program := machine.Relays()
	if root == "" {
		return nil, nil
	}
	r := &relay{client: c, outpost: program, streams: make(chan struct{}, maxBorrowed), borrowers: map[*outpost.Link]struct{}{}}
	if err := os.Remove(filepath.Join(stateDir, relaySocket)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, driver.Seal(err, "cannot replace the socket of the keeper's link")
	}
	err := process.ShortPath(stateDir, func(dir string) (err error) {
		r.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, relaySocket), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, driver.Seal(err, "cannot open the socket of the keeper's link")
	}
	r.listener.SetUnlinkOnClose(false) // the short path is gone by then, and the next keeper's may be there
	if err := os.Chmod(filepath.Join(stateDir, relaySocket), 0o600); err != nil {
		return nil, errors.Join(driver.Seal(err, "cannot open the socket of the keeper's link"), r.listener.Close())
	}
	go r.run()
	return r, nil
}

func (r *relay) run() {
	for {
		conn, err := r.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: some come free
			continue
		}
		go r.lend(conn)
	}
}

// lend serves one borrower, who has to be of this user and to know the outpost.
func (r *relay) lend(conn *net.UnixConn) {
	defer conn.Close()
	if !process.SameUser(conn) || !r.ready() {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(lendPatience)) // it never fails on an open connection
	greeting, err := bufio.NewReaderSize(conn, maxGreeting).ReadSlice('\n')
	if err != nil || string(greeting) != r.outpost+"\n" {
		return
	}
	if _, err := conn.Write([]byte{lent}); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	r.mu.Lock()
	if len(r.borrowers) >= maxBorrowers {
		r.mu.Unlock()
		return
	}
	link := outpost.Accepted(conn, r.carry)
	r.borrowers[link] = struct{}{}
	r.mu.Unlock()
	_ = link.Wait() // why it ended does not matter
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.borrowers, link)
}

// maxGreeting bounds what a borrower says first, in bytes.
const maxGreeting = 256

// ready reports whether there is a link that is whole, as far as is known.
func (r *relay) ready() bool {
	link := whole(&r.client.own)
	return link != nil && time.Since(link.Heard()) < silence && link.Heard().UnixNano() >= r.silent.Load()
}

// carry takes a question to the machine, and the answer back. A stream that is
// given up makes the borrower ask by itself.
func (r *relay) carry(question *outpost.Stream) {
	_ = question.SetReadDeadline(time.Now().Add(lendPatience)) // it never fails
	var q outpost.Request
	link := whole(&r.client.own)
	if err := outpost.ReadMessage(question, &q); err != nil || link == nil || !relayed(q.Op) {
		question.Abort()
		return
	}
	_ = question.SetReadDeadline(time.Time{})
	select {
	case r.streams <- struct{}{}:
		defer func() { <-r.streams }()
	default:
		question.Abort()
		return
	}
	answer, err := link.Open()
	if err != nil {
		question.Abort()
		return
	}
	defer answer.Close()
	asked := time.Now()
	link.Ping()
	defer time.AfterFunc(signPatience, func() {
		if link.Heard().Before(asked) {
			r.silent.Store(asked.UnixNano())
			answer.Abort()
		}
	}).Stop()
	if err := outpost.WriteMessage(answer, q); err != nil {
		question.Abort()
		return
	}
	go func() {
		if _, err := io.Copy(answer, question); err != nil {
			answer.Abort() // the borrower is gone
			return
		}
		_ = answer.CloseWrite() // its failure shows below
	}()
	if _, err := io.Copy(question, answer); err != nil {
		question.Abort()
	}
}

// Close lends no more. Questions under way are answered, if that does not take long.
func (r *relay) Close() error {
	err := r.listener.Close()
	for deadline := time.Now().Add(drainPatience); r.busy() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for link := range r.borrowers {
		_ = link.Close() // it never fails
	}
	return err
}

func (r *relay) busy() bool { return len(r.streams) > 0 }
