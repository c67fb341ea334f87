package egress

import (
	"net/netip"
)

// InodeByDiag asks through an open socket of NETLINK_SOCK_DIAG.
func InodeByDiag(fd int, local, remote netip.AddrPort) string {
	return NewDiag(fd).inode(local, remote)
}
