package egress

import "net/netip"

// The parsers of foreign bytes, for fuzzing.

func ServerName(data []byte) (name string, complete bool, cause string) {
	name, need, cause := readHello(data)
	return name, need == 0 && cause == "", cause
}

// Head is what a request head was read as.
type Head struct {
	Method, Target, Path, Scheme, Host, Absolute, Upgrade string
	Length                                                int64
}

func ReadRequest(head []byte) (Head, string) {
	r, cause := readRequest(head)
	return Head{r.method, r.target, r.path, r.scheme, r.host, r.absolute, r.upgrade, r.length}, cause
}

func Special(addr netip.Addr) bool {
	_, special := zoneOf(addr)
	return special
}

func Printable(text string) string { return printable(text) }
