//go:build unix

package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// descriptors is a connection to the guest's socket that carries frames, some
// of them with a TCP connection. Sending is safe from many goroutines;
// receiving belongs to one.
type descriptors struct {
	conn   *net.UnixConn
	mu     sync.Mutex // sending
	buffer []byte     // received and not yet taken
	files  []*os.File // received and not yet taken, oldest first
}

// Close ends the connection.
func (d *descriptors) Close() error { return d.conn.Close() }

// sendConn sends a frame with the descriptor of conn. The caller closes its
// own copy.
func (d *descriptors) sendConn(kind Kind, payload []byte, conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	if err := raw.Control(func(fd uintptr) {
		sendErr = d.send(kind, payload, unix.UnixRights(int(fd)))
	}); err != nil {
		return err
	}
	return sendErr
}

func (d *descriptors) send(kind Kind, payload, rights []byte) error {
	frame := append(binary.BigEndian.AppendUint32([]byte{byte(kind)}, uint32(len(payload))), payload...)
	d.mu.Lock()
	defer d.mu.Unlock()
	n, _, err := d.conn.WriteMsgUnix(frame, rights, nil)
	if err == nil && n < len(frame) {
		_, err = d.conn.Write(frame[n:])
	}
	return err
}

// next waits for a frame of at most limit bytes; its payload is valid until the
// next call.
func (d *descriptors) next(limit int) (Kind, []byte, error) {
	for {
		if len(d.buffer) >= headerSize {
			size := int(binary.BigEndian.Uint32(d.buffer[1:headerSize]))
			if size > limit {
				return 0, nil, fault.New(fault.Unavailable, "cannot use a frame of %d bytes", size)
			}
			if len(d.buffer) >= headerSize+size {
				kind, payload := Kind(d.buffer[0]), append([]byte(nil), d.buffer[headerSize:headerSize+size]...)
				d.buffer = append(d.buffer[:0], d.buffer[headerSize+size:]...)
				return kind, payload, nil
			}
		}
		if err := d.fill(); err != nil {
			return 0, nil, err
		}
	}
}

func (d *descriptors) fill() error {
	data := make([]byte, 16<<10)
	control := make([]byte, unix.CmsgSpace(16*4))
	n, oobn, flags, _, err := d.conn.ReadMsgUnix(data, control)
	if err != nil {
		return err
	}
	if n == 0 {
		return io.EOF
	}
	d.buffer = append(d.buffer, data[:n]...)
	messages, err := unix.ParseSocketControlMessage(control[:oobn])
	if err != nil {
		return err
	}
	taken := 0
	for _, message := range messages {
		fds, err := unix.ParseUnixRights(&message)
		if err != nil {
			continue // credentials or the like, which we did not ask for
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			d.files = append(d.files, os.NewFile(uintptr(fd), "connection"))
			taken++
		}
	}
	if flags&unix.MSG_CTRUNC != 0 {
		if taken > 0 {
			return fault.New(fault.Unavailable, "too many descriptors in one message")
		}
		// This process has none left. The kernel closed the one that came, and ends
		// each read after a descriptor, so its place in the order is here.
		d.files = append(d.files, nil)
	}
	return nil
}

// takeConn takes the oldest descriptor that has come, which must be a TCP
// connection; nil when this process had no descriptor left for it.
func (d *descriptors) takeConn() (*net.TCPConn, error) {
	if len(d.files) == 0 {
		return nil, fault.New(fault.Unavailable, "a connection came without its descriptor")
	}
	file := d.files[0]
	d.files = d.files[1:]
	if file == nil {
		return nil, nil
	}
	conn, err := net.FileConn(file)
	if closed := file.Close(); errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return nil, closed
	} else if err = errors.Join(err, closed); err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fault.New(fault.Unavailable, "a descriptor is not a TCP connection"), conn.Close())
	}
	return tcp, nil
}
