package container

import (
	"context"
	"io"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
)

// OverSSH reports whether the engine at an address is reached by the user's ssh.
func OverSSH(address string) bool { return strings.HasPrefix(address, "ssh://") }

// Reach starts the engine's own client on its host, which carries a stream to the
// engine. It needs Docker 18.09 or later. env is ssh's.
func Reach(ctx context.Context, address string, env []string) (io.ReadWriteCloser, error) {
	return remote.Reach(ctx, address, env, "docker", "system", "dial-stdio")
}
