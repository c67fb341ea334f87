package secret

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Host is where a secret may be sent:
//
//	api.example.com           over TLS, port 443
//	api.example.com:8443
//	*.example.com             every name below it
//	http://localhost:4000     without TLS, where the human asks for that
type Host struct {
	name     string // canonical, or an address; without the wildcard
	port     uint16
	wildcard bool
	plain    bool
}

// ParseHost reads one host. Its errors have kind fault.Invalid.
func ParseHost(text string) (Host, error) {
	refuse := func(cause string) (Host, error) {
		return Host{}, fault.New(fault.Invalid, "cannot use %q as the host of a secret: %s", text, cause).WithHint("write api.example.com or api.example.com:8443")
	}
	host := Host{port: 443}
	rest := text
	if scheme, after, ok := strings.Cut(text, "://"); ok {
		switch strings.ToLower(scheme) {
		case egress.HTTPS:
		case egress.HTTP:
			host.plain, host.port = true, 80
		default:
			return refuse("a secret goes over https, or http where that is written")
		}
		rest = after
	}
	rest = strings.TrimSuffix(rest, "/")
	if strings.ContainsAny(rest, "/?#@ ") {
		return refuse("it is the host alone, without user, path and spaces")
	}
	name := rest
	if addr, err := netip.ParseAddr(strings.Trim(rest, "[]")); err == nil { // without a port
		name = addr.String()
	} else if before, port, err := net.SplitHostPort(rest); err == nil {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return refuse("its port is not a number from 1 to 65535")
		}
		name, host.port = before, uint16(number)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		if addr.Zone() != "" {
			return refuse("an address with a zone is of one machine only")
		}
		host.name = addr.Unmap().String()
		return host, nil
	}
	if below, ok := strings.CutPrefix(name, "*."); ok {
		host.wildcard, name = true, below
		if !strings.Contains(strings.Trim(name, "."), ".") {
			return refuse("a wildcard needs two labels behind it")
		}
	}
	canonical, err := egress.CanonicalHost(name)
	if err != nil {
		return Host{}, err
	}
	host.name = canonical
	return host, nil
}

// Matches reports whether a connection leads to the host. name is canonical, or
// an address; plain means without TLS.
func (h Host) Matches(name string, port uint16, plain bool) bool {
	if port != h.port || plain != h.plain {
		return false
	}
	if h.wildcard {
		return strings.HasSuffix(name, "."+h.name)
	}
	return name == h.name
}

// Equal reports whether two hosts are the same.
func (h Host) Equal(other Host) bool { return h == other }

// String writes the host as ParseHost reads it.
func (h Host) String() string {
	text, standard, scheme := h.name, uint16(443), ""
	if h.wildcard {
		text = "*." + text
	}
	if h.plain {
		standard, scheme = 80, "http://"
	}
	if h.port != standard {
		return scheme + net.JoinHostPort(text, strconv.Itoa(int(h.port)))
	}
	return scheme + text
}

// Rule is the rule that a network policy must have for the host.
func (h Host) Rule() string {
	name := h.name
	if h.wildcard {
		name = "*." + name
	}
	return net.JoinHostPort(name, strconv.Itoa(int(h.port)))
}

// MarshalText implements encoding.TextMarshaler.
func (h Host) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Host) UnmarshalText(text []byte) error {
	parsed, err := ParseHost(string(text))
	*h = parsed
	return err
}

// Target is the target that a network policy decides on for the host, below a
// wildcard for one of its names.
func (h Host) Target() egress.Target {
	name := h.name
	if h.wildcard {
		name = "any." + name
	}
	return egress.Target{Host: name, Port: h.port}
}
