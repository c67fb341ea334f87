package engine

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/forward"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// Port is one forwarded port of a sandbox. The JSON fields are pinned by a
// golden file; add, never rename.
type Port struct {
	Name    string `json:"name"`
	Inside  int    `json:"inside"` // where the server inside must listen
	Host    int    `json:"host"`   // where this machine listens
	Address string `json:"address"`
	URL     string `json:"url"`
	Open    bool   `json:"open"` // the sandbox runs, this machine listens, and so does something inside
}

// Ports lists the forwarded ports of a sandbox. While it is stopped they are those
// that it will have again, if no other program takes them.
func (e *Engine) Ports(ctx context.Context, dir, name string) ([]Port, error) {
	e, p, err := e.findAny(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	state, _ := e.state(ctx, p.record)
	ports, err := e.ports(p, state == sandbox.Running)
	if err != nil || state != sandbox.Running || len(ports) == 0 {
		return ports, err
	}
	inside := p.listening(ctx)
	for i := range ports {
		ports[i].Open = ports[i].Open && inside[ports[i].Inside]
	}
	return ports, nil
}

func (e *Engine) ports(p *place, running bool) ([]Port, error) {
	var record forward.Record
	if _, err := e.side(p, store.PortsFile, &record); err != nil {
		return []Port{}, err
	}
	ports := []Port{}
	for _, port := range record.Ports {
		address := record.Listen
		if address == "" {
			address = "127.0.0.1"
		}
		shown := Port{Name: port.Name, Inside: port.Inside, Host: port.Host, Address: address, Open: running && port.Host != 0}
		if port.Host != 0 {
			shown.URL = portURL(p.record.Name, port, record.Listen)
		}
		ports = append(ports, shown)
	}
	return ports, nil
}

// portURL names a host of its own for each port: browsers lead every name below
// localhost to loopback (RFC 6761, 6.3), and keep cookies apart by name, but
// not by port. With one name for all, a page of a sandbox would see the cookies
// of every other server on this machine.
func portURL(name string, port forward.Port, listen string) string {
	host := port.Name + "." + name + ".localhost"
	if address, err := netip.ParseAddr(listen); err == nil && !address.IsLoopback() && !address.IsUnspecified() {
		host = listen
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port.Host)) + "/"
}

// OpenPort makes sure that the sandbox runs, and tells where one of its ports is.
// Without a name it means the only one.
func (e *Engine) OpenPort(ctx context.Context, dir, name, port string) (Port, []string, error) {
	e, p, err := e.findAny(ctx, dir, name)
	if err != nil {
		return Port{}, nil, err
	}
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return Port{}, nil, err
	}
	if err := stream.Close(); err != nil {
		return Port{}, nil, err
	}
	ports, err := e.ports(p, true)
	if err != nil {
		return Port{}, nil, err
	}
	if port == "" && len(ports) == 1 {
		return ports[0], p.notes, nil
	}
	i := slices.IndexFunc(ports, func(candidate Port) bool { return candidate.Name == port })
	switch {
	case i >= 0:
		return ports[i], p.notes, nil
	case len(ports) == 0:
		return Port{}, nil, fault.New(fault.NotFound, "sandbox %q forwards no port", p.record.Name).
			WithHint(`write ports = ["web"] into [container] of .litterbox.toml, then litterbox stop %s`, p.record.Name)
	case port == "":
		return Port{}, nil, fault.New(fault.Invalid, "cannot choose one of the %d ports of sandbox %q", len(ports), p.record.Name).
			WithHint("litterbox open %s %s", p.record.Name, ports[0].Name)
	}
	return Port{}, nil, noPort(p.record.Name, port, ports)
}
