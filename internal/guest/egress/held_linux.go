package egress

import (
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// announcePatience is how long an announced connection waits for the keeper,
// which opens a conduit for it at once or never.
const announcePatience = time.Minute

// held is the set of connections that were announced, or are carried: where
// host and guest share no kernel, they stay here and conduits bring their
// bytes.
type held struct {
	mu      sync.Mutex
	waiting map[uint64]announced
	carried int
	most    int // of both together
}

type announced struct {
	conn    *net.TCPConn
	keeper  *wire.Egress
	timeout *time.Timer
}

func newHeld() held { return held{waiting: map[uint64]announced{}, most: mostHeld()} }

// mostHeld leaves descriptors for the commands that the guest starts.
func mostHeld() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur/4 > wire.MaxConduits {
		return wire.MaxConduits
	}
	return max(1, int(limit.Cur)/4)
}

// announce keeps a connection until the keeper carries it. Without room for it,
// or without a keeper, the program sees a refusal.
func (e *Intake) announce(keeper *wire.Egress, conn *net.TCPConn, c wire.Connection) {
	id := e.next.Add(1)
	if !e.held.add(id, conn, keeper) {
		_ = keeper.Announce(0, c) // for the record, before the refusal
		reset(conn)
		return
	}
	if keeper.Announce(id, c) != nil {
		e.held.drop(id)
	}
}

// Announced takes the connection that was announced under id, for the conduit
// that the keeper opens for it.
func (e *Intake) Announced(id uint64) (func(*wire.Conduit), error) {
	one, ok := e.held.take(id, true)
	if !ok {
		return nil, errors.New("the connection is no longer there")
	}
	return func(c *wire.Conduit) {
		defer e.held.done()
		Carry(one.conn, c)
	}, nil
}

func (h *held) add(id uint64, conn *net.TCPConn, keeper *wire.Egress) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting)+h.carried >= h.most {
		return false
	}
	h.waiting[id] = announced{conn, keeper, time.AfterFunc(announcePatience, func() { h.drop(id) })}
	return true
}

// take removes a connection from those that wait; one that is carried still
// counts until done.
func (h *held) take(id uint64, carried bool) (announced, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one, ok := h.waiting[id]
	if ok {
		delete(h.waiting, id)
		one.timeout.Stop()
		if carried {
			h.carried++
		}
	}
	return one, ok
}

func (h *held) done() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.carried--
}

// drop refuses a connection that waits.
func (h *held) drop(id uint64) {
	if one, ok := h.take(id, false); ok {
		reset(one.conn)
	}
}

// dropAll refuses the connections that wait for a keeper that is gone.
func (h *held) dropAll(keeper *wire.Egress) {
	h.mu.Lock()
	var gone []uint64
	for id, one := range h.waiting {
		if one.keeper == keeper {
			gone = append(gone, id)
		}
	}
	h.mu.Unlock()
	for _, id := range gone {
		h.drop(id)
	}
}
