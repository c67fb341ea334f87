package fake

import (
	"net"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// serveAnybody is wire.Serve without the check for a key: the defect
// [LetsStrangersIn].
func serveAnybody(conn net.Conn, guestPrivate []byte, handle func(wire.Stream)) {
	defer conn.Close()
	signer, err := ssh.ParsePrivateKey(guestPrivate)
	if err != nil {
		return
	}
	config := &ssh.ServerConfig{ServerVersion: wire.Identification, NoClientAuth: true}
	config.AddHostKey(signer)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for c := range channels {
		stream, requests, err := c.Accept()
		if err != nil {
			continue
		}
		go ssh.DiscardRequests(requests)
		go func() {
			defer stream.Close()
			handle(stream)
		}()
	}
}
