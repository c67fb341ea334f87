package keeper

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// serveFar takes one connection of a program after the other from the guest, where
// nothing of this machine is mounted. It ends with the place, and goes on after cuts.
func (s *signer) serveFar(ctx context.Context) {
	proxy := s.proxy()
	for {
		select {
		case s.room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		link := s.k.wire.newest()
		stream, err := link.Open()
		if err == nil {
			conn, refused := wire.AcceptSSHAgent(ctx, stream, s.agent.Inside)
			if refused == nil {
				go func() {
					defer func() { <-s.room }()
					_ = proxy.Serve(ctx, conn) // a protocol error of the program ends it
				}()
				continue
			}
			_ = stream.Close() // it has said everything
			err = refused
		}
		<-s.room
		if ctx.Err() != nil || s.k.released() {
			return
		}
		if s.k.wire.cutSince().IsZero() { // else the wire ended, and the log says so
			fmt.Fprintln(os.Stderr, "keeper: programs inside do not reach the ssh-agent:", err)
		}
		if !s.k.wire.after(ctx, link) {
			return
		}
	}
}

// lendKnownHosts sends what the host knew of hosts when the sandbox was started.
func (k *keeper) lendKnownHosts() error {
	return k.lendFiles([]driver.Lent{{Source: filepath.Join(k.order.Spec.StateDir, KnownHostsFile), Target: k.signer.agent.KnownHosts}})
}
