package mcp

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of connections. Connections that have not shown the token are counted
// separately, and the oldest goes when a new one comes: a client that holds all of
// them keeps out no client with the token.
const (
	maxConnections = 512
	maxStrangers   = 128
	refusedBody    = time.Second // for the rest of a refused request
)

// door is a listener that knows which connections have shown the token.
type door struct {
	net.Listener

	mu        sync.Mutex
	strangers []*visitor // the oldest first
	known     int
}

// visitor is one connection.
type visitor struct {
	net.Conn
	door *door

	known, gone bool // guarded by door.mu
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{Conn: conn, door: d}
	var oldest *visitor
	d.mu.Lock()
	if len(d.strangers) >= maxStrangers {
		oldest = d.strangers[0]
		d.strangers = d.strangers[1:]
		oldest.gone = true
	}
	d.strangers = append(d.strangers, v)
	d.mu.Unlock()
	if oldest != nil {
		_ = oldest.Conn.Close() // its handler sees that
	}
	return v, nil
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	v.door.mu.Lock()
	switch {
	case v.gone:
	case v.known:
		v.door.known--
	default:
		v.door.strangers = slices.DeleteFunc(v.door.strangers, func(other *visitor) bool { return other == v })
	}
	v.gone = true
	v.door.mu.Unlock()
	return v.Conn.Close()
}

type visitorKey struct{}

// introduce is the ConnContext of a server behind a door.
func introduce(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, conn)
}

// welcome notes that a request on the connection has shown the token. It is
// false when there is no room.
func welcome(ctx context.Context) bool {
	v, ok := ctx.Value(visitorKey{}).(*visitor)
	if !ok {
		return true
	}
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	switch {
	case v.known:
		return true
	case v.gone || v.door.known >= maxConnections:
		return false
	}
	v.known = true
	v.door.known++
	v.door.strangers = slices.DeleteFunc(v.door.strangers, func(other *visitor) bool { return other == v })
	return true
}

// turnAway refuses a request, and does not wait long for the rest of it.
func turnAway(w http.ResponseWriter, text string, code int) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedBody)) // fails where nothing more can be read
	http.Error(w, text, code)
}
