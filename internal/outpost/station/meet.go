package station

import (
	"net"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// meet answers whether a host's socket is reached from here.
func (s *Station) meet(path string) outpost.Answer {
	conn, err := reach(path)
	if err != nil {
		return outpost.Answer{} // the host uses streams
	}
	_ = conn.Close() // nothing was written
	return outpost.Answer{Met: true, Boot: s.Boot}
}

// handOver gives the guest at the other end of to a connection to the host's
// socket. Where that fails nothing has been said to the guest.
func (s *Station) handOver(to net.Conn, path string) bool {
	guest, can := to.(*net.UnixConn)
	if !can {
		return false
	}
	conn, err := reach(path)
	if err != nil {
		return false
	}
	defer conn.Close()
	return wire.PassOn(guest, conn) == nil
}

// maxPath is how long the path of a socket may be (unix(7)).
const maxPath = 107

// reach connects to a socket. Its directory may be one that only lets through.
func reach(path string) (conn *net.UnixConn, err error) {
	if len(path) <= maxPath {
		return net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	}
	err = process.ShortPath(filepath.Dir(path), func(dir string) (err error) {
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(dir, filepath.Base(path)), Net: "unix"})
		return err
	})
	return conn, err
}
