package wire_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// pipe is one end of a stream in memory.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error { return p.Close() }

// A connection that a program makes before the host has the answer waits for it,
// and is announced after it.
func TestServeNetworkIsReadyBeforeItAnswers(t *testing.T) {
	host, guest := net.Pipe()
	defer host.Close()
	announced := make(chan error, 1)
	go func() {
		if _, _, err := wire.NewReader(guest).Next(); err != nil { // the request
			t.Errorf("Next: %v", err)
		}
		_, err := wire.ServeNetwork(pipe{guest}, func(way *wire.Egress) {
			go func() {
				announced <- way.Announce(7, wire.Connection{Destination: netip.MustParseAddrPort("192.0.2.7:80")})
			}()
		})
		if err != nil {
			t.Errorf("ServeNetwork: %v", err)
		}
	}()
	way, err := wire.OpenNetwork(t.Context(), pipe{host})
	if err != nil {
		t.Fatal(err)
	}
	received, err := way.Receive()
	if err != nil || received.Kind != wire.KindAnnounced || received.ID != 7 {
		t.Errorf("Receive() = %+v, %v; want connection 7", received, err)
	}
	if err := <-announced; err != nil {
		t.Errorf("Announce: %v", err)
	}
}
