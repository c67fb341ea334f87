package probe

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds one attempt. Without a network the kernel answers at once;
// an unanswered attempt was sent somewhere. PATIENCE is longer where an answer
// is sure, even on a busy machine.
var patience = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("PATIENCE")); err == nil {
		return d
	}
	return 3 * time.Second
}()

// connect tries connections and says which get an answer.
func connect(args []string) (any, error) {
	result := outcomes{}
	for i := 0; i+1 < len(args); i += 2 {
		result[args[i]+" "+args[i+1]] = reach(args[i], args[i+1])
	}
	return result, nil
}

// reach sends a byte and wants one back.
func reach(network, address string) string {
	conn, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return reason(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return reason(err)
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		return reason(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return "sent, " + reason(err)
	}
	return "ok"
}

func reason(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "no answer"
	}
	return named(err)
}

// addressed makes every address local and answers there, then connects: the
// control that shows that the attempts can succeed. It needs a network
// namespace of its own (bare).
func addressed(args []string) (any, error) {
	if holdsMachine() {
		return nil, errMachine
	}
	for i := 0; i+1 < len(args); i += 2 {
		if err := answer(args[i], args[i+1]); err != nil {
			return nil, err
		}
	}
	return connect(args)
}

func answer(network, address string) error {
	if err := up("lo"); err != nil {
		return err
	}
	if ip, _, err := net.SplitHostPort(address); err == nil {
		if parsed := net.ParseIP(ip).To4(); parsed != nil && !parsed.IsLoopback() {
			if err := give(fmt.Sprintf("lo:%d", parsed[3]), parsed); err != nil {
				return err
			}
		}
	}
	if strings.HasPrefix(network, "udp") {
		socket, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		go func() {
			for buf := make([]byte, 1); ; {
				if _, from, err := socket.ReadFrom(buf); err == nil {
					_, _ = socket.WriteTo(buf, from)
				}
			}
		}()
		return nil
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("!"))
		}
	}()
	return nil
}

// give puts one more address on the loopback interface, under an alias of it
// (netdevice(7)).
func give(alias string, ip net.IP) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(alias)
	if err != nil {
		return err
	}
	if err := request.SetInet4Addr(ip); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, request)
}

func up(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
