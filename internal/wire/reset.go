package wire

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
)

// ErrReset is what a reader gets when the other side has broken the stream off.
var ErrReset = errors.New("the stream was reset")

// resetRequest goes before the end of a channel that was broken off, as SSH
// itself only has an orderly end. Peers that do not know it see an end.
const resetRequest = "reset@litterbox"

// Reset breaks a stream off: the other side's reads end with ErrReset, where
// the stream can say so. Data that was written and has not arrived may be lost.
func Reset(s Stream) error {
	if channel, ok := s.(*channel); ok {
		_, _ = channel.SendRequest(resetRequest, false, nil) // no one reads from one that has ended
	}
	return s.Close()
}

// channel is a stream of a link.
type channel struct {
	ssh.Channel
	reading sync.Mutex // the end of a channel wakes one reader only
	reset   atomic.Bool
	ask     chan chan struct{} // answered once every request that has arrived is known
	over    chan struct{}      // closed when no more requests come
}

func newChannel(c ssh.Channel, requests <-chan *ssh.Request) *channel {
	s := &channel{Channel: c, ask: make(chan chan struct{}), over: make(chan struct{})}
	go s.listen(requests)
	return s
}

// listen takes the requests of the other side; one of them matters.
func (c *channel) listen(requests <-chan *ssh.Request) {
	defer close(c.over)
	note := func(r *ssh.Request) {
		if r.Type == resetRequest {
			c.reset.Store(true)
		} else if r.WantReply {
			_ = r.Reply(false, nil) // as ssh.DiscardRequests does
		}
	}
	for {
		select {
		case r, ok := <-requests:
			if !ok {
				return
			}
			note(r)
		case answer := <-c.ask:
			for waiting := true; waiting; {
				select {
				case r, ok := <-requests:
					if !ok {
						close(answer)
						return
					}
					note(r)
				default:
					waiting = false
				}
			}
			close(answer)
		}
	}
}

// Read reads what the other side wrote. A request that came before the end has
// been handed to listen before the end could be seen here.
func (c *channel) Read(p []byte) (int, error) {
	n, err := alone{c}.Read(p)
	if err == io.EOF && c.wasReset() {
		err = ErrReset
	}
	return n, err
}

// alone reads a channel when nothing else does.
type alone struct{ c *channel }

func (a alone) Read(p []byte) (int, error) {
	a.c.reading.Lock()
	defer a.c.reading.Unlock()
	return a.c.Channel.Read(p)
}

// Close closes the stream. Data that still comes is read until the other side
// closes it too: unread it would be kept, and a guest need never close.
func (c *channel) Close() error {
	err := c.Channel.Close()
	if err == nil {
		go func() { _, _ = io.Copy(io.Discard, alone{c}) }()
	}
	return err
}

func (c *channel) wasReset() bool {
	answer := make(chan struct{})
	select {
	case c.ask <- answer:
		<-answer
	case <-c.over:
	}
	return c.reset.Load()
}
