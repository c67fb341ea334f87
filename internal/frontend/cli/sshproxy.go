package cli

import "context"

// sshProxy is the argument with which OpenSSH clients start this program, as the
// ProxyCommand of the block that ssh-config writes. It is not a command for people:
// no help names it.
const sshProxy = "ssh-proxy"

// isSSHProxy reports whether an OpenSSH client asks for a host.
func isSSHProxy(args []string) bool { return len(args) == 2 && args[0] == sshProxy }

// serveDoor serves the client until it is gone. A hang-up, which clients send
// when they end, ends it in order.
func serveDoor(ctx context.Context, p Program, c *console, host string) int {
	ctx, stop := interruptible(onOwnBehalf(ctx))
	defer stop()
	return report(c.stderr, p.Door(ctx, host), false)
}
