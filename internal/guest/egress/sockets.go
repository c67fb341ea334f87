package egress

// The guest's ports inside, where the sandbox's own packet filter leads every
// outgoing connection, every DNS query and every other datagram.
const (
	ConnectionPort = 64999
	ResolverPort   = 64953
	DatagramPort   = 64998
)

// DatagramSockets are descriptors that can only be opened with rights over the
// sandbox's network. Those for packets from inside take datagrams for any
// address (IP_TRANSPARENT, IP_RECVORIGDSTADDR) on DatagramPort; the others send
// whole packets from any address (IPPROTO_RAW), which come back in through the
// loopback interface.
type DatagramSockets struct {
	In4, In6   int
	Out4, Out6 int
}
