package forward

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Numbers are chosen from these: above those of well-known servers, and below
// those that the kernel gives to outgoing connections (ip(7),
// ip_local_port_range), so that they are still free after a stop.
const (
	firstPort = 20000
	lastPort  = 32767
)

// Owner is the sandbox that holds a number, also while it is stopped.
type Owner struct {
	Sandbox string `json:"sandbox"` // id
	Name    string `json:"name"`    // of the port
}

// Reserve changes the table of all sandboxes' numbers, while no other process does.
type Reserve func(ctx context.Context, change func(held map[int]Owner) error) error

// Open listens for every port of a record and puts the numbers into it. A port
// keeps its number as long as it is free; notes say which ports had to move.
// With attach the guest runs already and the numbers inside stay.
func Open(ctx context.Context, reserve Reserve, id string, record *Record, attach bool) (l *Listeners, notes []string, err error) {
	l = &Listeners{}
	err = reserve(ctx, func(held map[int]Owner) error {
		mine := map[int]bool{}
		for i := range record.Ports {
			port := &record.Ports[i]
			before := port.Host
			sockets, err := choose(record.Listen, port, held, Owner{id, port.Name})
			if err != nil {
				return err
			}
			l.add(*port, sockets)
			if before != 0 && before != port.Host {
				notes = append(notes, "port "+port.Name+" moved from "+strconv.Itoa(before)+" to "+strconv.Itoa(port.Host)+": the old one is in use on this machine")
			}
			if !port.Fixed && (!attach || port.Inside == 0) {
				port.Inside = port.Host
			}
			l.ports[len(l.ports)-1].Inside = port.Inside
			mine[port.Host] = true
		}
		for number, owner := range held {
			if owner.Sandbox == id && !mine[number] {
				delete(held, number)
			}
		}
		return nil
	})
	if err != nil {
		l.Close()
		return nil, nil, err
	}
	return l, notes, nil
}

// choose takes the port's previous number, or another one.
func choose(address string, port *Port, held map[int]Owner, owner Owner) ([]net.Listener, error) {
	free := func(number int) bool { return held[number] == Owner{} || held[number] == owner }
	const tries = 1000
	candidate := port.Host
	var last error
	for range tries {
		if candidate != 0 && free(candidate) {
			sockets, err := listen(address, candidate)
			if err == nil {
				port.Host = candidate
				held[candidate] = owner
				return sockets, nil
			}
			if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
				return nil, fault.Wrap(fault.Unavailable, err, "cannot forward port %q", port.Name).
					WithHint("correct container.ports-listen in your own configuration")
			}
			last = err
		}
		candidate = firstPort + rand.IntN(lastPort-firstPort+1)
	}
	return nil, fault.Wrap(fault.Unavailable, errors.Join(last, errors.New("no unused port was found")), "cannot forward port %q", port.Name)
}

// listen opens one number on an address, or on the loopback addresses of both
// families: else another user could listen on the other, and a browser that
// tries it first would talk to that one.
func listen(address string, number int) ([]net.Listener, error) {
	at := func(host string) (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(number)))
	}
	if address != "" {
		socket, err := at(address)
		return []net.Listener{socket}, err
	}
	first, err := at("127.0.0.1")
	if err != nil {
		return nil, err
	}
	second, err := at("::1")
	switch {
	case err == nil:
		return []net.Listener{first, second}, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errors.Join(err, first.Close())
	}
	return []net.Listener{first}, nil // this machine has no IPv6
}
