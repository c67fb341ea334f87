package egress

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// answerTTL is short because a name's address is known at once anyway. A
// program that keeps an address for ever keeps a valid one.
const answerTTL = 10

// Sizes of DNS messages. Ours is never longer than a question of 255 bytes and
// one answer, so it fits into the 512 bytes that every client takes.
const (
	maxQuery = 4096
	udpSize  = 1232 // what DNS Flag Day 2020 agreed on
)

// Resolver is the only DNS server of a sandbox, whatever server a program asks. It
// asks no other server: an allowed name gets an address of our own, and the real
// one is looked up when a program connects. So nothing leaves through a question.
type Resolver struct {
	Policy  func() *Policy    // called for every question
	Names   *Names            // shared with the proxy
	Observe func(Observation) // may be nil; called for every refusal
	Process string            // who asks, for observations; may be empty
	// Await reports whether a human will be asked about a name that no rule
	// mentions, as soon as a program connects. Such a name gets an address
	// too, which leads nowhere before that. May be nil.
	Await func(host string) bool
}

// Answer returns the reply to one DNS message from the sandbox, without the
// length prefix that TCP adds; nil means that the message gets none. It is
// safe for concurrent use and for any input.
func (r *Resolver) Answer(msg []byte, tcp bool) []byte {
	if len(msg) < 12 || len(msg) > maxQuery && !tcp {
		return nil
	}
	var parser dnsmessage.Parser
	header, err := parser.Start(msg)
	if err != nil || header.Response {
		return nil // an answer to an answer could go on for ever
	}
	reply := dnsmessage.Header{ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true}
	if header.OpCode != 0 {
		return bare(reply, dnsmessage.RCodeNotImplemented)
	}
	// No program puts several questions in one message (RFC 9619).
	if binary.BigEndian.Uint16(msg[4:]) != 1 {
		return bare(reply, dnsmessage.RCodeFormatError)
	}
	question, err := parser.Question()
	if err != nil {
		return bare(reply, dnsmessage.RCodeFormatError)
	}
	edns, ok := hasEDNS(&parser)
	if !ok {
		return bare(reply, dnsmessage.RCodeFormatError)
	}
	code, answer := r.resolve(question)
	reply.RCode = code
	return build(reply, question, answer, edns)
}

// hasEDNS skips to the additional section and looks for EDNS there.
func hasEDNS(parser *dnsmessage.Parser) (edns, ok bool) {
	if parser.SkipAllQuestions() != nil || parser.SkipAllAnswers() != nil || parser.SkipAllAuthorities() != nil {
		return false, false
	}
	for {
		header, err := parser.AdditionalHeader()
		if err == dnsmessage.ErrSectionDone {
			return edns, true
		}
		if err != nil || parser.SkipAdditional() != nil {
			return false, false
		}
		edns = edns || header.Type == dnsmessage.TypeOPT
	}
}

// resolve answers one question; a nil body with success means that the name
// exists and has no such record.
func (r *Resolver) resolve(question dnsmessage.Question) (dnsmessage.RCode, dnsmessage.ResourceBody) {
	if question.Class != dnsmessage.ClassINET && question.Class != dnsmessage.ClassANY {
		return dnsmessage.RCodeRefused, nil
	}
	asked := question.Name.String()
	if addr, ok := reverse(asked); ok {
		return r.resolveReverse(question, addr)
	}
	if question.Type == dnsmessage.TypeSRV {
		asked = serviceHost(asked)
	}
	name, cause := canonicalHost(asked)
	if cause != "" {
		r.refuse(asked, Decision{Why: "not a host name: " + cause})
		return dnsmessage.RCodeNameError, nil
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return dnsmessage.RCodeSuccess, loopback(question.Type) // the sandbox's own (RFC 6761)
	}
	verdict := r.Policy().DecideName(name)
	if !verdict.Allowed && (verdict.Rule != "" || r.Await == nil || !r.Await(name)) {
		r.refuse(name, verdict)
		return dnsmessage.RCodeNameError, nil
	}
	if question.Type != dnsmessage.TypeA && question.Type != dnsmessage.TypeAAAA {
		// Above all HTTPS and SVCB, which would move a client to other names,
		// ports and keys.
		return dnsmessage.RCodeSuccess, nil
	}
	v4, v6, err := r.Names.Of(name)
	if err != nil {
		r.refuse(name, Decision{Why: err.Error()})
		return dnsmessage.RCodeServerFailure, nil
	}
	if question.Type == dnsmessage.TypeA {
		return dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: v4.As4()}
	}
	return dnsmessage.RCodeSuccess, &dnsmessage.AAAAResource{AAAA: v6.As16()}
}

// serviceHost is the host whose service is looked up by a name like
// _http._tcp.deb.debian.org (RFC 2782). The host's rules hold for it: apt asks so
// before every connection.
func serviceHost(asked string) string {
	if parts := strings.SplitN(asked, ".", 3); len(parts) == 3 && strings.HasPrefix(parts[0], "_") && strings.HasPrefix(parts[1], "_") {
		return parts[2]
	}
	return asked
}

func (r *Resolver) resolveReverse(question dnsmessage.Question, addr netip.Addr) (dnsmessage.RCode, dnsmessage.ResourceBody) {
	host, ok := r.Names.Host(addr)
	if !ok {
		r.refuse(addr.String(), Decision{Why: "only the sandbox's own addresses have names"})
		return dnsmessage.RCodeNameError, nil
	}
	name, err := dnsmessage.NewName(host + ".")
	if question.Type != dnsmessage.TypePTR || err != nil {
		return dnsmessage.RCodeSuccess, nil
	}
	return dnsmessage.RCodeSuccess, &dnsmessage.PTRResource{PTR: name}
}

func (r *Resolver) refuse(host string, verdict Decision) {
	if r.Observe == nil {
		return
	}
	r.Observe(Observation{Host: host, Protocol: DNS, Process: r.Process, Verdict: Denied, Rule: verdict.Rule, Why: verdict.Why, Count: 1})
}

func loopback(kind dnsmessage.Type) dnsmessage.ResourceBody {
	switch kind {
	case dnsmessage.TypeA:
		return &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}
	case dnsmessage.TypeAAAA:
		return &dnsmessage.AAAAResource{AAAA: netip.IPv6Loopback().As16()}
	}
	return nil
}

// bare is a reply without the question, for messages that have none to echo.
func bare(header dnsmessage.Header, code dnsmessage.RCode) []byte {
	header.RCode = code
	out, err := (&dnsmessage.Message{Header: header}).Pack()
	if err != nil {
		return nil
	}
	return out
}

// build writes the reply. The question goes back exactly as it came, in its own
// mixture of cases, which careful clients compare (the 0x20 hack). A negative
// answer carries no SOA, so that no client caches it: the next revision of the
// policy may allow the name.
func build(header dnsmessage.Header, question dnsmessage.Question, answer dnsmessage.ResourceBody, edns bool) []byte {
	builder := dnsmessage.NewBuilder(make([]byte, 0, 512), header)
	builder.EnableCompression()
	err := builder.StartQuestions()
	if err == nil {
		err = builder.Question(question)
	}
	if err == nil {
		err = builder.StartAnswers()
	}
	resource := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: answerTTL}
	if err == nil {
		switch body := answer.(type) {
		case *dnsmessage.AResource:
			err = builder.AResource(resource, *body)
		case *dnsmessage.AAAAResource:
			err = builder.AAAAResource(resource, *body)
		case *dnsmessage.PTRResource:
			err = builder.PTRResource(resource, *body)
		}
	}
	if err == nil {
		err = builder.StartAdditionals()
	}
	if err == nil && edns {
		var opt dnsmessage.ResourceHeader
		if err = opt.SetEDNS0(udpSize, header.RCode, false); err == nil {
			err = builder.OPTResource(opt, dnsmessage.OPTResource{})
		}
	}
	out, finish := builder.Finish()
	if err != nil || finish != nil {
		return bare(header, dnsmessage.RCodeServerFailure)
	}
	return out
}

// reverse reads a name of in-addr.arpa or ip6.arpa.
func reverse(name string) (netip.Addr, bool) {
	name = strings.TrimSuffix(lowerASCII(name), ".")
	if text, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		parts := strings.Split(text, ".")
		if len(parts) != 4 {
			return netip.Addr{}, false
		}
		addr, err := netip.ParseAddr(parts[3] + "." + parts[2] + "." + parts[1] + "." + parts[0])
		return addr, err == nil
	}
	text, ok := strings.CutSuffix(name, ".ip6.arpa")
	if !ok || len(text) != 63 {
		return netip.Addr{}, false
	}
	var addr [16]byte
	for i := range 32 {
		if i > 0 && text[2*i-1] != '.' {
			return netip.Addr{}, false
		}
		nibble, err := strconv.ParseUint(text[2*i:2*i+1], 16, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		at := 31 - i
		addr[at/2] |= byte(nibble) << (4 * (1 - at%2))
	}
	return netip.AddrFrom16(addr), true
}
