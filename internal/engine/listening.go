package engine

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// tcpTable bounds how much of a sandbox's socket table is read.
const tcpTable = 4 << 20

// listening gives the TCP ports on which something listens inside. The table is
// read, nothing is connected to: a server that takes one connection would lose
// it. It is empty where the sandbox does not answer.
func (p *place) listening(ctx context.Context) map[int]bool {
	open := map[int]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		stream, err := p.dial(ctx)
		if err != nil {
			return open
		}
		var content bytes.Buffer
		_, err = wire.Read(ctx, stream, []byte(table), 0, tcpTable, &content)
		if stream.Close() != nil || err != nil {
			continue // IPv6 may be missing
		}
		for line := range strings.Lines(content.String()) {
			// proc_net(5): sl local_address rem_address st, 0A is TCP_LISTEN.
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "0A" {
				continue
			}
			if _, port, ok := strings.Cut(f[1], ":"); ok {
				if n, err := strconv.ParseUint(port, 16, 16); err == nil {
					open[int(n)] = true
				}
			}
		}
	}
	return open
}
