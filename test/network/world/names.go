package world

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Names is what the resolvers of the world know, and what they were asked.
type Names struct {
	mu    sync.Mutex
	known map[string][]netip.Addr
	asked []string
}

// Set makes name lead to addrs; a name that begins with "*." stands for every
// name below.
func (n *Names) Set(name string, addrs ...netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[strings.ToLower(name)] = addrs
}

// Asked gives the questions about name and what is below it.
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

func (n *Names) find(name string) ([]netip.Addr, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, name)
	if addrs, ok := n.known[name]; ok {
		return slices.Clone(addrs), true
	}
	for {
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return nil, false
		}
		if addrs, ok := n.known["*."+rest]; ok {
			return slices.Clone(addrs), true
		}
		name = rest
	}
}

// answer replies to one DNS message; nil to what is none.
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
	addrs, ok := n.find(question.Name.String())
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

func (n *Names) serveDatagrams(conn net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		size, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return // closed with the process
		}
		if reply := n.answer(buffer[:size]); reply != nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
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
