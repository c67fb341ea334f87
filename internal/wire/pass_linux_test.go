package wire_test

import (
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// A connection that is passed on is the host's own, whatever becomes of the one
// that brought it.
func TestPassOn(t *testing.T) {
	host, passed := pair(t)
	outpost, guest := pair(t)
	if err := wire.PassOn(outpost, passed); err != nil {
		t.Fatal(err)
	}
	_, _ = outpost.Close(), passed.Close()
	taken, err := wire.TakePassed(guest)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := io.WriteString(host, "hello"); err != nil {
		t.Fatal(err)
	}
	_ = host.CloseWrite()
	if got, err := io.ReadAll(taken); err != nil || string(got) != "hello" {
		t.Errorf("the guest reads %q, %v", got, err)
	}
}

func TestTakePassedRefuses(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	one, other := pair(t)
	raw := func(c *net.UnixConn) (fd int) {
		control, err := c.SyscallConn()
		if err == nil {
			err = control.Control(func(n uintptr) { fd = int(n) })
		}
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	for name, c := range map[string]struct {
		text string
		fds  []int
	}{
		"nothing":       {wire.PassHello, nil},
		"two":           {wire.PassHello, []int{raw(one), raw(other)}},
		"a file":        {wire.PassHello, []int{int(file.Fd())}},
		"with more":     {wire.PassHello + "SSH-2.0", []int{raw(one)}},
		"another hello": {wire.EgressHello, []int{raw(one)}},
	} {
		t.Run(name, func(t *testing.T) {
			outpost, guest := pair(t)
			var rights []byte
			if len(c.fds) > 0 {
				rights = unix.UnixRights(c.fds...)
			}
			if _, _, err := outpost.WriteMsgUnix([]byte(c.text), rights, nil); err != nil {
				t.Fatal(err)
			}
			if taken, err := wire.TakePassed(guest); err == nil {
				_ = taken.Close()
				t.Error("it was taken")
			}
		})
	}
}
