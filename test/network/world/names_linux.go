package world

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Names is what the resolvers of the world know and what they were asked.
type Names struct {
	mu    sync.Mutex
	known map[string][]netip.Addr
	asked []string
	// forward has the servers of domains that are delegated.
	forward map[string]func(message []byte) []byte
}

// Set makes name lead to addrs; a name that begins with "*." covers every name below.
func (n *Names) Set(name string, addrs ...netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[strings.ToLower(name)] = addrs
}

// Asked returns the questions about name and the names below it.
func (n *Names) Asked(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []string
	for _, asked := range n.asked {
		if asked == name || strings.HasSuffix(asked, "."+name) {
			found = append(found, asked)
		}
	}
	return found
}

func (n *Names) find(name string) (addrs []netip.Addr, ok bool, forward func([]byte) []byte) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, name)
	addrs, ok = n.known[name]
	for !ok && forward == nil {
		_, rest, more := strings.Cut(name, ".")
		if !more {
			break
		}
		if forward = n.forward[name]; forward == nil {
			addrs, ok = n.known["*."+rest]
		}
		name = rest
	}
	return slices.Clone(addrs), ok, forward
}

// answer replies to one DNS message; nil to anything else.
func (n *Names) answer(message []byte) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil || header.Response {
		return nil
	}
	question, err := parser.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, RecursionDesired: true, RecursionAvailable: true},
		Questions: []dnsmessage.Question{question},
	}
	addrs, ok, forward := n.find(question.Name.String())
	if forward != nil {
		return forward(message)
	}
	if !ok {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, addr := range addrs {
		head := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 1}
		switch {
		case question.Type == dnsmessage.TypeA && addr.Is4():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: addr.As4()}})
		case question.Type == dnsmessage.TypeAAAA && addr.Is6():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		case question.Type == dnsmessage.TypeTXT:
			reply.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.TXTResource{TXT: []string{"there"}}}}
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// ServeDatagrams answers on conn until it is closed.
func (n *Names) ServeDatagrams(conn net.PacketConn) {
	for {
		buffer := make([]byte, 4096)
		size, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		go func() {
			if reply := n.answer(buffer[:size]); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}()
	}
}

// Delegate makes another server, at a UDP address in the world, answer for domain
// and the names below it: through the world's resolvers, and directly at address.
func (w *World) Delegate(t testing.TB, domain, address, server string) {
	t.Helper()
	ask := func(message []byte) []byte {
		var conn net.Conn
		err := w.place.do(func() (err error) {
			conn, err = net.Dial("udp", server)
			return err
		})
		if err != nil {
			return nil
		}
		defer conn.Close()
		reply := make([]byte, 4096)
		size := 0
		if err = conn.SetDeadline(time.Now().Add(5 * time.Second)); err == nil {
			if _, err = conn.Write(message); err == nil {
				size, _ = conn.Read(reply) // silence is an answer too
			}
		}
		return reply[:size]
	}
	w.Names.mu.Lock()
	w.Names.forward[domain] = ask
	w.Names.mu.Unlock()
	go w.Names.ServeDatagrams(w.ListenPacket(t, address))
}

func (n *Names) serveStream(conn net.Conn) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
		reply := n.answer(message)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}
