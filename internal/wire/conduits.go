package wire

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The SSH channel types of conduits. The keeper opens both; the guest opens
// nothing.
const (
	// AnnouncedType carries a connection that a program inside has made. Its
	// extra data is the id (8 bytes) under which the guest announced it.
	AnnouncedType = "announced@litterbox"
	// PortType carries a connection to a server inside; its extra data is the
	// port (2 bytes). The guest confirms the channel when it is connected.
	PortType = "port@litterbox"
)

// MaxConduits is how many conduits one link carries at the same time; the rest
// of its streams are for requests.
const MaxConduits = MaxStreams - 24

// The requests on the channel of a conduit, beside resetRequest. None of them
// wants a reply.
const (
	creditRequest = "credit@litterbox" // creditMessage: how many more bytes are welcome
	endRequest    = "end@litterbox"    // endMessage: how many bytes were sent in all; no more will be
)

type creditMessage struct{ Bytes uint32 }

type endMessage struct{ Total uint64 }

// memory bounds what the conduits of a link hold beyond their first windows.
type memory struct{ left atomic.Int64 }

// The memory for larger windows, in bytes: a keeper's, and a guest's, which
// counts as the sandbox's.
const (
	keeperMemory = 32 << 20
	guestMemory  = 8 << 20
)

func newMemory(size int64) *memory {
	m := &memory{}
	m.left.Store(size)
	return m
}

func (m *memory) take(n int) bool {
	if m.left.Add(int64(-n)) >= 0 {
		return true
	}
	m.left.Add(int64(n))
	return false
}

func (m *memory) give(n int) { m.left.Add(int64(n)) }

// listen takes the requests of the other end until the channel is gone.
func (c *Conduit) listen(requests <-chan *ssh.Request) {
	defer close(c.gone)
	for r := range requests {
		switch r.Type {
		case resetRequest:
			c.fail(ErrReset)
		case creditRequest:
			var m creditMessage
			if ssh.Unmarshal(r.Payload, &m) == nil {
				c.mu.Lock()
				c.credit = min(c.credit+int(min(m.Bytes, 2*mostWindow)), 2*mostWindow)
				c.writable.Broadcast()
				c.mu.Unlock()
			}
		case endRequest:
			var m endMessage
			if ssh.Unmarshal(r.Payload, &m) == nil {
				c.mu.Lock()
				c.ended, c.total = true, m.Total
				c.readable.Broadcast()
				c.mu.Unlock()
			}
		}
	}
}

// drain reads the channel at once, until it ends: the window of SSH is larger
// than what this end takes. While nothing comes it holds only a small buffer.
func (c *Conduit) drain(foul func()) {
	small := make([]byte, 512)
	buffer := small
	var large *[pieceSize]byte
	for {
		n, err := c.channel.Read(buffer)
		c.accept(buffer[:n])
		if err != nil {
			break
		}
		if full := n == len(buffer); full && large == nil {
			large = pieces.Get().(*[pieceSize]byte)
			buffer = large[:]
		} else if !full && large != nil {
			pieces.Put(large)
			large, buffer = nil, small
		}
	}
	c.await(foul)
	c.fail(ErrReset) // unless all of it has come, which is the end
}

// closePatience is how long after the end of its data the end of a channel may
// come. We send both as one message.
const closePatience = 10 * time.Second

// await waits until the channel is gone after its data has ended. Anything a
// guest sends in between would be kept without a reader.
func (c *Conduit) await(foul func()) {
	since := time.Now()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-c.gone:
			return
		case <-look.C:
		}
		if n, _ := c.channel.Read(make([]byte, 1)); n > 0 || time.Since(since) > closePatience {
			foul()
			<-c.gone
			return
		}
	}
}

// accept keeps the data that has come, unless it is too much.
func (c *Conduit) accept(data []byte) {
	if len(data) == 0 {
		return
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return // no one reads it
	}
	c.allowed -= len(data)
	c.received += uint64(len(data))
	if c.allowed < 0 || c.ended && c.received > c.total {
		c.mu.Unlock()
		c.fail(errors.New("the other end sent more than it may"))
		_ = c.Reset()
		return
	}
	c.held += len(data)
	for len(data) > 0 {
		if last := len(c.queue) - 1; last < 0 || c.queue[last].to == pieceSize {
			c.queue = append(c.queue, piece{data: pieces.Get().(*[pieceSize]byte)})
		}
		last := &c.queue[len(c.queue)-1]
		n := copy(last.data[last.to:], data)
		last.to += n
		data = data[n:]
	}
	c.readable.Broadcast()
	c.mu.Unlock()
}

// Carry opens the conduit of a connection that the guest has announced. It
// returns when the guest has answered or the link has ended. A connection that
// is no longer there is fault.NotFound; too many at once is fault.Unavailable.
func (l *Link) Carry(id uint64) (*Conduit, error) {
	return l.openConduit(AnnouncedType, binary.BigEndian.AppendUint64(nil, id), nil)
}

// Dial connects to a port inside, and waits until that is done or gone is
// closed. A port without a listener is fault.Unavailable; an older guest, which
// knows only Forward, is fault.Unsupported.
func (l *Link) Dial(port uint16, gone <-chan struct{}) (*Conduit, error) {
	return l.openConduit(PortType, binary.BigEndian.AppendUint16(nil, port), gone)
}

func (l *Link) openConduit(kind string, extra []byte, given <-chan struct{}) (*Conduit, error) {
	type opened struct {
		conduit *Conduit
		err     error
	}
	select {
	case l.conduits <- struct{}{}:
	default:
		return nil, fault.New(fault.Unavailable, "cannot carry a connection: the sandbox has %d on this wire", MaxConduits)
	}
	// Not waited for here, as in Open. The slot is taken until the guest has
	// answered and closed, whenever that is.
	answer := make(chan opened, 1)
	go func() {
		defer func() { <-l.conduits }()
		channel, requests, err := l.conn.OpenChannel(kind, extra)
		if err != nil {
			answer <- opened{nil, refused(err)}
			return
		}
		go l.guard(channel)
		conduit := newConduit(channel, l.memory, l.foul)
		answer <- opened{conduit, nil}
		conduit.listen(requests)
	}()
	select {
	case o := <-answer:
		return o.conduit, o.err
	case <-l.gone:
		return nil, fault.New(fault.Unavailable, "cannot carry a connection: the wire has ended")
	case <-given:
	}
	go func() {
		select {
		case o := <-answer:
			if o.conduit != nil {
				_ = o.conduit.Reset()
			}
		case <-l.gone:
		}
	}()
	return nil, fault.New(fault.Canceled, "cannot carry a connection: no client waits for it")
}

func refused(err error) error {
	var no *ssh.OpenChannelError
	if !errors.As(err, &no) {
		return fault.Wrap(fault.Unavailable, err, "cannot carry a connection")
	}
	kind := fault.Unavailable
	switch no.Reason {
	case ssh.UnknownChannelType:
		kind = fault.Unsupported
	case ssh.Prohibited:
		kind = fault.NotFound
	}
	return fault.New(kind, "%s", printable(cut(no.Message)))
}

// guard ends the link when the guest writes where none of ours does: the SSH
// library keeps that data, and nothing reads it.
func (l *Link) guard(channel ssh.Channel) {
	if n, _ := channel.Stderr().Read(make([]byte, 1)); n > 0 {
		l.foul()
	}
}

// foul ends the link of a guest that is not ours.
func (l *Link) foul() { _ = l.Close() }

// Handlers answer what the keeper opens. Stream is needed; each of the others
// may be nil, and is asked whether it takes a conduit. The function it returns is
// called once: with the conduit, which is closed when the call returns, or with
// nil when the link has ended meanwhile.
type Handlers struct {
	Stream    func(Stream)
	Announced func(id uint64) (func(*Conduit), error)
	Port      func(port uint16) (func(*Conduit), error)
}

// conduit finds the handler of a channel, and refuses the channel when there is none.
func (h Handlers) conduit(c ssh.NewChannel) func(*Conduit) {
	var take func(*Conduit)
	err := error(fault.New(fault.Invalid, "cannot understand what shall be carried"))
	reason := ssh.ConnectionFailed
	switch extra := c.ExtraData(); {
	case c.ChannelType() == AnnouncedType && h.Announced != nil && len(extra) == 8:
		reason = ssh.Prohibited
		take, err = h.Announced(binary.BigEndian.Uint64(extra))
	case c.ChannelType() == PortType && h.Port != nil && len(extra) == 2:
		take, err = h.Port(binary.BigEndian.Uint16(extra))
	}
	if err != nil {
		_ = c.Reject(reason, err.Error())
		return nil
	}
	return take
}

// knows reports whether there is a handler for channels of a type.
func (h Handlers) knows(kind string) bool {
	return kind == AnnouncedType && h.Announced != nil || kind == PortType && h.Port != nil
}
