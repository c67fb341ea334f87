package ssh

import (
	"context"
	"io"
	"net/netip"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// forward connects a client to a port of the sandbox's own loopback. Any other
// destination would be reached from this machine and past the sandbox's network
// policy, so it is refused.
func (s *server) forward(ctx context.Context, offered ssh.NewChannel) {
	var wanted struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if ssh.Unmarshal(offered.ExtraData(), &wanted) != nil || wanted.Port == 0 || wanted.Port > 65535 {
		_ = offered.Reject(ssh.ConnectionFailed, "cannot read which port is wanted")
		return
	}
	if !s.inside(wanted.Host) {
		_ = offered.Reject(ssh.Prohibited, "only ports inside the sandbox are forwarded: ask for localhost")
		return
	}
	server, err := s.Engine.DialInside(ctx, s.place(), uint16(wanted.Port))
	if err != nil {
		_ = offered.Reject(ssh.ConnectionFailed, printable(err.Error()))
		return
	}
	defer server.Close()
	channel, requests, err := offered.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	go ssh.DiscardRequests(requests)
	defer context.AfterFunc(ctx, func() { server.Close() })()
	carry(server, channel)
}

// inside reports whether a destination means the sandbox itself.
func (s *server) inside(host string) bool {
	if host == "" || host == "localhost" || host == s.Host.Host || host == s.Host.Name {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// carry moves bytes both ways until both have ended.
func carry(server engine.Inside, channel ssh.Channel) {
	var moving sync.WaitGroup
	moving.Go(func() {
		if _, err := io.Copy(server, channel); err != nil {
			server.Close()
			return
		}
		_ = server.CloseWrite() // fails where the other direction has ended it
	})
	moving.Go(func() {
		if _, err := io.Copy(channel, server); err != nil {
			channel.Close()
			return
		}
		_ = channel.CloseWrite()
	})
	moving.Wait()
}
