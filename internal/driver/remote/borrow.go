package remote

import (
	"context"
	"io"
	"net"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// borrow returns a link to the machine that a keeper lends, or nil: this client has
// one of its own, or has to dial.
func (c *client) borrow(ctx context.Context) *outpost.Link {
	machine, can := c.machine.(Relayed)
	if !can || c.keeps.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if whole(&c.own) != nil {
		return nil
	}
	if link := whole(&c.lent); link != nil {
		return link
	}
	root, program := machine.Relays()
	if root == "" {
		return nil
	}
	sockets, err := filepath.Glob(filepath.Join(root, "sandboxes", "*", relaySocket))
	if err != nil {
		return nil // a root that is a pattern
	}
	ctx, cancel := context.WithTimeout(ctx, lendPatience)
	defer cancel()
	for _, socket := range sockets {
		dir := filepath.Dir(socket)
		if w, err := readWhere(dir); err != nil || w.Machine != c.machine.Name() {
			continue
		}
		if conn := borrowAt(ctx, dir, program); conn != nil {
			return c.use(&c.lent, outpost.Dialled(conn))
		}
	}
	return nil
}

// borrowAt asks one keeper. It returns nil when that one is gone, does not answer at
// once or has no link.
func borrowAt(ctx context.Context, dir, program string) net.Conn {
	var conn net.Conn
	err := process.ShortPath(dir, func(short string) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(short, relaySocket))
		return err
	})
	if err != nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	said := make([]byte, 1)
	_, err = io.WriteString(conn, program+"\n")
	if err == nil {
		_, err = conn.Read(said)
	}
	if local, is := conn.(*net.UnixConn); !stop() || err != nil || said[0] != lent || !is || !process.SameUser(local) {
		_ = conn.Close() // it is of no use
		return nil
	}
	return conn
}

// giveBack ends the use of a link that did not carry a question. It is closed when
// what else is under way on it has ended.
func (c *client) giveBack(link *outpost.Link) { c.lent.CompareAndSwap(link, nil) }
