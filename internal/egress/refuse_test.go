package egress_test

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// The reason is recorded before the reset, so it is there when the reset is seen.
func TestReasonComesBeforeReset(t *testing.T) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	// sees returns what the client reads at this moment.
	sees := func() (seen error) {
		raw, err := client.SyscallConn()
		if err == nil {
			err = raw.Read(func(fd uintptr) bool {
				_, _, seen = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_DONTWAIT)
				return true
			})
		}
		if err != nil {
			t.Error(err)
		}
		return seen
	}
	names, err := egress.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	observed := 0
	proxy := egress.New(egress.Options{
		Policy: func() *egress.Policy { return &egress.Policy{Default: egress.Deny} }, Names: names,
		Observe: func(o egress.Observation) {
			observed++
			if err := sees(); o.Verdict != egress.Denied || err != syscall.EAGAIN {
				t.Errorf("when it was recorded as %s the client saw: %v", o.Verdict, err)
			}
		},
	})
	proxy.Handle(t.Context(), server, netip.MustParseAddrPort(internet+":443"), "test")
	if err := sees(); observed != 1 || err != syscall.ECONNRESET {
		t.Errorf("recorded %d times, and then the client saw: %v", observed, err)
	}
}
