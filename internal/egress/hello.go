package egress

import "encoding/binary"

// maxHello bounds a ClientHello with its record headers. Those of browsers with
// post-quantum keys have about 2 kB.
const maxHello = 32 << 10

// TLS numbers (RFC 8446, RFC 6066).
const (
	recordHandshake    = 22
	maxRecord          = 1 << 14
	handshakeHello     = 1
	extensionName      = 0
	maxExtensions      = 128
	maxSessionID       = 32
	recordHeader       = 5
	handshakeHeader    = 4
	helloVersionRandom = 2 + 32
)

// readHello finds the server name in the TLS records of a ClientHello, which
// may be split over several. It returns need > 0 while fewer than need bytes
// are there to judge, and a cause when the bytes are not a plain ClientHello.
// An encrypted ClientHello (ECH) is judged by its outer name: browsers send a
// random one to every server (GREASE), and a real one needs keys from HTTPS
// records, which the resolver never gives out.
func readHello(data []byte) (name string, need int, cause string) {
	body, need, cause := helloBody(data)
	if need > 0 || cause != "" {
		return "", need, cause
	}
	name, ok := serverName(body)
	if !ok {
		return "", 0, "its TLS ClientHello is malformed"
	}
	return name, 0, ""
}

// helloBody joins the handshake message from its records.
func helloBody(data []byte) (body []byte, need int, cause string) {
	var message []byte
	for at := 0; ; {
		rest := data[at:]
		if len(rest) < recordHeader {
			return nil, at + recordHeader, tooLong(at + recordHeader)
		}
		length := int(binary.BigEndian.Uint16(rest[3:]))
		if rest[0] != recordHandshake || rest[1] != 3 || length == 0 || length > maxRecord {
			return nil, 0, "it begins like TLS but is not"
		}
		end := at + recordHeader + length
		if len(data) < end {
			return nil, end, tooLong(end)
		}
		message = append(message, data[at+recordHeader:end]...)
		at = end
		if len(message) < handshakeHeader {
			continue
		}
		if message[0] != handshakeHello {
			return nil, 0, "its TLS does not begin with a ClientHello"
		}
		want := handshakeHeader + (int(message[1])<<16 | int(message[2])<<8 | int(message[3]))
		switch {
		case want > maxHello:
			return nil, 0, tooLong(want)
		case len(message) == want:
			return message[handshakeHeader:], 0, ""
		case len(message) > want:
			return nil, 0, "its TLS ClientHello is followed by something else"
		}
	}
}

func tooLong(need int) string {
	if need > maxHello {
		return "its TLS ClientHello is too long"
	}
	return ""
}

// serverName walks the body of a ClientHello. Anything that another parser could read
// differently (a second name, an extension twice, bytes left over) is malformed here.
func serverName(body []byte) (name string, ok bool) {
	b := bytesReader(body)
	if _, ok = b.take(helloVersionRandom); !ok {
		return "", false
	}
	session, ok := b.block(1)
	if !ok || len(session) > maxSessionID {
		return "", false
	}
	suites, ok := b.block(2)
	if !ok || len(suites) < 2 || len(suites)%2 != 0 {
		return "", false
	}
	if methods, ok := b.block(1); !ok || len(methods) == 0 {
		return "", false
	}
	if len(b) == 0 {
		return "", true // before extensions existed
	}
	list, ok := b.block(2)
	if !ok || len(b) != 0 {
		return "", false
	}
	var seen []uint16
	for extensions := bytesReader(list); len(extensions) > 0; {
		kind, ok := extensions.uint16()
		if !ok || len(seen) >= maxExtensions {
			return "", false
		}
		content, ok := extensions.block(2)
		if !ok {
			return "", false
		}
		for _, before := range seen {
			if before == kind {
				return "", false
			}
		}
		seen = append(seen, kind)
		if kind == extensionName {
			if name, ok = oneName(content); !ok {
				return "", false
			}
		}
	}
	return name, true
}

// oneName reads the server_name extension: one entry of type host_name.
func oneName(content []byte) (string, bool) {
	b := bytesReader(content)
	list, ok := b.block(2)
	if !ok || len(b) != 0 {
		return "", false
	}
	entries := bytesReader(list)
	kind, ok := entries.take(1)
	if !ok || kind[0] != 0 {
		return "", false
	}
	name, ok := entries.block(2)
	return string(name), ok && len(entries) == 0 && len(name) > 0
}

// bytesReader takes length-prefixed blocks off the front.
type bytesReader []byte

func (b *bytesReader) take(n int) ([]byte, bool) {
	if len(*b) < n {
		return nil, false
	}
	taken := (*b)[:n]
	*b = (*b)[n:]
	return taken, true
}

func (b *bytesReader) uint16() (uint16, bool) {
	taken, ok := b.take(2)
	if !ok {
		return 0, false
	}
	return binary.BigEndian.Uint16(taken), true
}

// block takes a block preceded by its length in width bytes, 1 or 2.
func (b *bytesReader) block(width int) ([]byte, bool) {
	prefix, ok := b.take(width)
	if !ok {
		return nil, false
	}
	length := int(prefix[0])
	if width == 2 {
		length = length<<8 | int(prefix[1])
	}
	return b.take(length)
}
